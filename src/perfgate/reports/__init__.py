"""Reports: records as text for people. Pure functions."""
