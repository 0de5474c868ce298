"""Launchers: how a command reaches its machine. One module each."""
