"""Rehearsal: mocks for the engine programs, so that the whole suite can be run without a GPU.

`setup` puts them in place for a session; every other module is one of them, or belongs to
one. Their numbers are made up, and every report they write says so.
"""
