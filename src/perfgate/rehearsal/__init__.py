"""Rehearsal: stand-ins for the engine programs, so that the whole suite can be run without a GPU.

`stage` puts them in place for a session; every other module is one of them, or part of one. Their
numbers are made up, and every report they write says so.
"""
