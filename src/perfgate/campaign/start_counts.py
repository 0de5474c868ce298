"""Start counts: how many fresh starts a group took, planned and saved, and how long.

A group is one scenario's campaign in one session. What sharing saved is counted, not estimated: a
start that served three probes stands for three. Only the seconds saved are worked out, from the
starts of this session that became ready.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from perfgate.runs.record import GroupSeconds, GroupStarts


@dataclass
class Start:
    """One fresh start of a campaign.

    Attributes:
        role: "reference", "new" or "claim"; of a control "baseline_control" or "anchor_control".
        again: whether it was made because the one of this role before it was disturbed or lost.
        serves: whether a server is started, for at least one probe.
        served: probes that were measured on that server.
        offline: measurements of programs that have the engine inside, each a start of its own.
        ready_s: seconds until the server was ready; None: it never was, or there is none.
        spent_s: seconds from its begin to its end; waiting for leases is not part of it.
        wasted: whether its work is to be made again.
    """

    role: str
    again: bool = False
    serves: bool = True
    served: int = 0
    offline: int = 0
    ready_s: float | None = None
    spent_s: float = 0.0
    wasted: bool = False

    @property
    def is_control(self) -> bool:
        """Whether it is of another build."""
        return self.role.endswith("_control")

    @property
    def made(self) -> int:
        """Starts of the engine in it."""
        return int(self.serves) + self.offline

    @property
    def without_sharing(self) -> int:
        """Starts that it stands for, if every probe had one of its own."""
        return max(self.served, int(self.serves)) + self.offline

    def end(self, began: float) -> None:
        """Close the account of a start that began at `began`, on the monotonic clock."""
        self.spent_s = time.monotonic() - began

    def measured(self, *, offline: bool) -> None:
        """Count a probe that was measured, or was tried."""
        if offline:
            self.offline += 1
        else:
            self.served += 1


@dataclass
class Account:
    """The starts of one group so far.

    Attributes:
        planned: starts that were expected when the group began.
        synthetic: whether a start had GPUs that are made up.
    """

    planned: int = 0
    synthetic: bool = False
    starts: list[Start] = field(default_factory=list)

    def begin(self, role: str, *, serves: bool) -> Start:
        """Open the account of another start."""
        before = next((one for one in reversed(self.starts) if one.role == role), None)
        start = Start(role, again=before is not None and before.wasted, serves=serves)
        self.starts.append(start)
        return start

    def ended(self, *, wasted: bool) -> None:
        """Tell whether the work of the last start is to be made again."""
        if self.starts:
            self.starts[-1].wasted = wasted

    @property
    def made(self) -> int:
        """Starts of the engine."""
        return sum(one.made for one in self.starts)

    @property
    def spent_s(self) -> float:
        return sum(one.spent_s for one in self.starts)

    def mean_s(self) -> float | None:
        """Seconds that one start took with all that was measured on it; None: none was made."""
        return fmean(one.spent_s for one in self.starts) if self.starts else None

    def totals(self) -> tuple[GroupStarts, GroupSeconds]:
        """Starts and seconds, as the group's record has them."""
        without = sum(one.without_sharing for one in self.starts)
        ready = [one.ready_s for one in self.starts if one.ready_s is not None]
        saved = (without - self.made) * fmean(ready) if ready else 0.0
        starts = GroupStarts(
            planned=self.planned,
            made=self.made,
            without_sharing=without,
            again=sum(one.made for one in self.starts if one.again),
            controls=sum(one.made for one in self.starts if one.is_control),
        )
        seconds = GroupSeconds(
            spent=round(self.spent_s, 1),
            starting=round(sum(ready), 1),
            saved=round(saved, 1),
        )
        return starts, seconds


def together(accounts: Iterable[Account]) -> Account:
    """The accounts of one group's campaigns as one."""
    found = list(accounts)
    return Account(
        sum(one.planned for one in found),
        any(one.synthetic for one in found),
        [start for one in found for start in one.starts],
    )
