"""About: what ``--version`` and ``--print-completion`` print. Both end the command, status 0."""

import argparse
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import perfgate
from perfgate.cli.command_parser import parsers_of

SHELLS = ("bash", "zsh", "tcsh")


class PrintVersion(argparse.Action):
    """Prints perfgate's version, Python's, and where perfgate is installed, in one line."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version  # takes longer than all of --help

        folder = Path(perfgate.__file__).parent
        print(
            f"perfgate {version('perfgate')} "
            f"(Python {platform.python_version()}, installed in {folder})"
        )
        parser.exit()


class PrintCompletion(argparse.Action):
    """Prints a script that completes commands and options in a shell.

    Args:
        whole: makes the command line with the options of every command.
    """

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str,
        whole: Callable[[], argparse.ArgumentParser],
        **settings: Any,
    ) -> None:
        super().__init__(option_strings, dest, choices=SHELLS, **settings)
        self._whole = whole

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        _namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        _option: str | None = None,
    ) -> None:
        import shtab  # only needed here

        whole = self._whole()
        for one in parsers_of(whole):
            for action in one._actions:
                if action.type is Path or action.dest == "scenarios":
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(whole, str(values)))
        parser.exit()
