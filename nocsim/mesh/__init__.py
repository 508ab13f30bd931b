"""The mesh, cycle by cycle: topology, routing, state, kernel, and who waits for whom when it stands still."""
