"""The network simulator published with CoSA: its transactions, its dataflow, its DRAM coupling, exactly."""
