"""Verdicts: measurements and references in, judgements out. Starts nothing."""
