"""Machine: the hardware, its condition while something is measured, leases, and the preflight."""
