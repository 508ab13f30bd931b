"""What every package shares: errors, files, terminal, tables, pools, caches. Imports nothing of the rest."""
