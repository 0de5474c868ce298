"""Nodes: what runs on the other nodes of a start, and what asks it from here."""
