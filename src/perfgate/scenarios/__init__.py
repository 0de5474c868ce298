"""Scenarios: the values, the YAML files they are read from, the rules they must keep."""
