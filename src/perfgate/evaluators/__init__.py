"""Evaluators: the programs that measure accuracy."""
