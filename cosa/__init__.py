"""Schedules for spatial DNN accelerators. Imports neither nocsim nor dram."""
