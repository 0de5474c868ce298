"""Core: what every room may use: errors, metrics, commands, files, programs. Imports no room."""
