"""The command line ``nocsim``."""
