"""Evaluators: the programs that measure accuracy. One module each."""
