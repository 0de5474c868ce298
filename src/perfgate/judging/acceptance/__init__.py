"""Acceptance: what moved between baselines, and whether a candidate may become one."""
