"""Budget: how much time a session may take; what no longer fits into it is not begun.

A start that runs is never cut. The deadline is a value of the monotonic clock, which no change of
the wall clock moves and which, on Linux, all processes of one machine share: so the main process of
a session can hand it to its workers. Workers on other machines could not use it.
"""

import re
import time
from dataclasses import dataclass

from perfgate.core.errors import InputError

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[hms])+|\d+(?:\.\d+)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)([hms]?)")


def seconds_of(text: str) -> float:
    """Seconds of ``4h``, ``90m``, ``2h30m``, ``3600s`` or ``3600``.

    Raises:
        InputError: none of these, or not above 0.
    """
    found = _PART.findall(text) if _SPAN.fullmatch(text) else []
    units = [unit for _, unit in found]
    total = sum(float(number) * _UNITS[unit or "s"] for number, unit in found)
    if not total > 0 or units != sorted(set(units), key="hms".find):
        raise InputError(
            "not a duration",
            field="--budget",
            found=repr(text),
            expected="4h, 90m, 2h30m, 3600s or 3600 (seconds)",
        )
    return total


def span(seconds: float) -> str:
    """``1 h 10 min``, ``25 min``, ``12 s``."""
    if round(seconds) < 60:
        return f"{max(0, round(seconds))} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


@dataclass(frozen=True)
class Estimate:
    """How long a group is expected to take.

    Attributes:
        seconds: that time, or the least that it needs where nothing is known.
        known: whether it was measured before, for this scenario or one like it.
    """

    seconds: float
    known: bool = True

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.seconds + other.seconds, self.known and other.known)

    def __str__(self) -> str:
        if self.known:
            return f"needs about {span(self.seconds)}"
        return (
            f"how long it takes is not known, limits say at most {span(self.seconds)} "
            "for the engine to start"
        )


@dataclass(frozen=True)
class Budget:
    """A session's time.

    Attributes:
        text: as the person wrote it.
        deadline: when it is used up, on the monotonic clock.
    """

    text: str
    deadline: float

    @classmethod
    def from_now(cls, text: str) -> "Budget":
        """The budget of a session that begins now.

        Raises:
            InputError: not a duration.
        """
        return cls(text, time.monotonic() + seconds_of(text))

    def left_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.deadline - time.monotonic())

    def refuses(self, estimate: Estimate) -> str | None:
        """Why something that takes so long is not begun any more; None: it may begin."""
        left = self.left_s()
        if 0 < left >= estimate.seconds:
            return None
        return f"not run: {estimate}, {span(left)} of --budget {self.text} are left"

    def no_more(self, seconds: float | None) -> str | None:
        """Why no further start of a group is made; None: one may be.

        Args:
            seconds: what a start of the group took so far; None: there was none.
        """
        left = self.left_s()
        if 0 < left >= (seconds or 0.0):
            return None
        needs = "" if seconds is None else f", and one takes about {span(seconds)}"
        return (
            f"no more starts: --budget {self.text} is nearly used up ({span(left)} are left{needs})"
        )
