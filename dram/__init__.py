"""Ground floor: DRAM devices, address mapping and controllers. Imports nothing of the other packages."""
