"""The command `perfgate` in this process: what it prints, and how it ends."""

import json
import shlex
from collections.abc import Sequence
from typing import Any

import pytest

from perfgate.cli.main import main


class Perfgate:
    """Each method calls it with these words, or with those of a text, quoted as in a shell."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def printed(self, words: str | Sequence[object], status: int = 0) -> str:
        """What it says on standard output."""
        self._capsys.readouterr()
        assert main(_listed(words)) == status
        return self._capsys.readouterr().out

    def plain(self, words: str | Sequence[object], status: int = 0) -> Any:
        """The values that it prints as JSON."""
        return json.loads(self.printed([*_listed(words), "--format", "json"], status))

    def refused(self, words: str | Sequence[object], status: int = 2) -> str:
        """What it says on standard error; on standard output nothing."""
        self._capsys.readouterr()
        assert main(_listed(words)) == status
        told = self._capsys.readouterr()
        assert told.out == ""
        return told.err


def _listed(words: str | Sequence[object]) -> list[str]:
    return shlex.split(words) if isinstance(words, str) else [*map(str, words)]
