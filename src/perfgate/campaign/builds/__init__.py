"""Builds: the build under test, and others that are started beside it."""
