"""Check: one question about a machine, and its answer. Whatever could not be asked is unknown."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "warning", "failed", "unknown"]

# What all GPUs together amount to is the worst of them; not knowing is worse than being well.
WORST_FIRST: tuple[Outcome, ...] = ("failed", "warning", "unknown", "ok")


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    Attributes:
        name: what was looked at.
        outcome: "failed": nothing may be started; "warning": numbers may suffer; "unknown": it
            could not be looked at.
        found: what was found; of an unknown one, why not.
        expected: what would have been well.
        hint: how to mend it; empty where there is nothing to mend.
    """

    name: str
    outcome: Outcome
    found: str
    expected: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Finding:
    """What one of several like things (GPUs, folders) amounts to."""

    outcome: Outcome
    text: str


def gib(size: float) -> str:
    """A size in bytes, for people."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"
