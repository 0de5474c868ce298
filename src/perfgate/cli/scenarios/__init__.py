"""`perfgate scenarios`: list, show and validate the scenarios of the suite, and their commands."""

from perfgate.cli.scenarios.verbs import add_options

__all__ = ["add_options"]
