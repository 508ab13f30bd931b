"""Packets on the mesh alone: replay of lists, synthetic traffic."""
