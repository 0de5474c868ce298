"""How well the gate detects: its error rates, beside the rules in use today (docs/detection.md)."""
