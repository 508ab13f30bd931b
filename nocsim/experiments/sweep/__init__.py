"""Sweeps: the points of a file of axes, run by processes here or on a cluster, kept in one SQLite file."""
