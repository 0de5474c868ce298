"""Problem: what is wrong at one path of a scenario; the reader of the file adds file and line."""

from dataclasses import dataclass

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: keys and positions from the scenario (or file) down to the value.
        problem: what is wrong, in a few words.
        found: what is there; None: left out of the message.
        expected: what may be there.
        hint: how to mend it.
    """

    path: Keys
    problem: str
    found: object = None
    expected: str | None = None
    hint: str | None = None


def dotted(path: Keys) -> str:
    """The path as people write it, e.g. ``scenarios[2].engine.settings.tp``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
