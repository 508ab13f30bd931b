"""Architecture and DRAM device files that travel with the package (data only)."""
