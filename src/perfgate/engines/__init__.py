"""Engines: the programs under test. One module each."""
