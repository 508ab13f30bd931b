"""The machine: PEs, buffers, ports and DRAM as processes, joined with the compiled islands."""
