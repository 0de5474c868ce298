"""The mock programs: a module of this package plays one program, or several of one kind."""

from collections.abc import Sequence
from importlib import import_module


def play(name: str, argv: Sequence[str]) -> None:
    """Play a program: ``MODULE:FUNCTION`` with the words behind the program."""
    module, _, function = name.partition(":")
    getattr(import_module(f"{__name__}.{module}"), function)(list(argv))
