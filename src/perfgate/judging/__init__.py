"""Judging: from measurements and what they are compared with to verdicts. Starts nothing."""
