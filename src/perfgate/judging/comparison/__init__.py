"""Comparison: the verbs `compare` and `judge`: numbers, runs, baselines, result files."""
