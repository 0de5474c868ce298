"""Hang dump: what a program, its machine and its processes were doing when it hung."""
