"""The command line ``cosa``."""
