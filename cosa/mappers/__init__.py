"""Mappers: one file each; every one turns a layer and an architecture into a checked schedule."""
