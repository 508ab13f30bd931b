"""Cycle-exact simulation of a schedule on a mesh of PEs. Imports the nouns of cosa, and dram."""
