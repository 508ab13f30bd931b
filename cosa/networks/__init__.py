"""Layer tables that travel with the package (data only)."""
