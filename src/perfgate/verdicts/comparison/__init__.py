"""Comparing: two measured things, from anywhere, by any known program, under the gate's rule."""
