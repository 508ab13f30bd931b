"""Many runs: comparisons, sweeps, whole networks, portfolios, calibration."""
