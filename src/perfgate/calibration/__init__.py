"""Calibration: the noise of one fresh start, measured on many starts of one build, and stored."""
