"""Runs: the run folder, its records, the progress of a session, and what files of results say."""
