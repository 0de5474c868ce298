"""The gate: statistics and verdicts. Pure functions, no input or output."""
