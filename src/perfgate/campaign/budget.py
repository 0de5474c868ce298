"""Budget: how much time a session may take; what no longer fits into it is not begun.

A start that runs is never cut. The deadline is a value of the monotonic clock, which no change of
the wall clock moves and which, on Linux, all processes of one machine share: so the main process of
a session can hand it to its workers. Workers on other machines could not use it.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from perfgate.campaign.schedule import MOST_CONTROLS, StartRole, controlled_by
from perfgate.campaign.start_counts import Account
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


# Fresh starts of one role made again because something disturbed them, at most.
_MOST_REPEATS = 2
# Fresh starts made again, elsewhere if possible, because the machine failed and not the build.
_MOST_LOST = 1


class StartAllowance:
    """The starts of one campaign.

    Args:
        budget_s: seconds after which no further start is made; None: they do not count.
        budget: the session's time; None: as long as it needs.
        account: what the starts of the campaign took so far.
    """

    def __init__(self, budget_s: float | None, budget: Budget | None, account: Account) -> None:
        self._budget_s = budget_s
        self._budget = budget
        self._account = account
        self._made: Counter[StartRole] = Counter()
        self._disturbed: Counter[StartRole] = Counter()
        self._lost = 0
        self._spent_s = 0.0

    def begin(self, role: StartRole) -> int:
        """Count another start; its number, from 1."""
        self._made[role] += 1
        return self._made.total()

    def ended(self, role: StartRole, seconds: float, *, disturbed: bool) -> None:
        """Count what a start took. The machine's own reference is not part of the budget."""
        self._disturbed[role] += disturbed
        if role != "reference":
            self._spent_s += seconds

    def lose(self) -> bool:
        """Whether a start that the machine lost may be made again; each is asked about once."""
        self._lost += 1
        return self._lost <= _MOST_LOST

    def repeats(self, role: StartRole) -> bool:
        """Whether the last start of a role, which was disturbed, is to be made again."""
        return self._disturbed[role] <= _MOST_REPEATS

    def allows(self, role: StartRole, most: int | None) -> bool:
        """Whether another start is allowed.

        Args:
            role: what it is of.
            most: starts of that role, at most; a control has a limit of its own; None: no limit.
        """
        if self.out_of_time or self.beyond_budget():
            return False
        if controlled_by(role) is not None:
            most = MOST_CONTROLS
        if most is None:
            return True
        made_up_for = min(self._disturbed[role], _MOST_REPEATS)
        return self._made[role] - made_up_for < most

    @property
    def out_of_time(self) -> bool:
        """Whether the scenario's own time is used up."""
        return self._budget_s is not None and self._spent_s >= self._budget_s

    def beyond_budget(self) -> str | None:
        """Why the session's time allows no further start; None: it does."""
        return None if self._budget is None else self._budget.no_more(self._account.mean_s())

    def why_no_more(self, *, undecided: bool, is_open: bool) -> Iterator[str]:
        """What kept the campaign from deciding a probe, beside the numbers.

        Args:
            undecided: whether its numbers ask for another start.
            is_open: whether another start would serve it.
        """
        if undecided and self.out_of_time:
            yield (
                f"no more starts: {self._spent_s:.0f} s used of gate.budget_s {self._budget_s:g}"
            )
        if is_open and (reason := self.beyond_budget()):
            yield reason
