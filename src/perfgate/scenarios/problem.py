"""Problem: what is wrong at one path of a value; the reader of its file adds file and line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from perfgate.core.errors import InputError

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: keys and positions from the file (or a scenario in it) down to the value.
        problem: what is wrong, in a few words.
        found: what is there; None: left out of the message.
        expected: what may be there.
        hint: how to fix it.
    """

    path: Keys
    problem: str
    found: object = None
    expected: str | None = None
    hint: str | None = None

    @classmethod
    def of(cls, path: Keys, error: InputError) -> Self:
        """What an error says is wrong, at a path."""
        return cls(path, error.problem, error.found, error.expected, error.hint)

    def error(
        self, file: Path | None = None, line: int | None = None, found: object = None
    ) -> InputError:
        """The problem with its place; `found` is what is there, where the problem does not say."""
        return InputError(
            self.problem,
            file=file,
            line=line,
            field=dotted(self.path) or None,
            found=found if self.found is None else self.found,
            expected=self.expected,
            hint=self.hint,
        )


def dotted(path: Keys) -> str:
    """The path as people write it, e.g. ``scenarios[2].engine.settings.tp``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
