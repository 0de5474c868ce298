"""Clients: the programs that put load on a server."""
