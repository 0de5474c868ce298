"""How well the gate detects, beside the rules in use today: docs/explanation/detection.md."""
