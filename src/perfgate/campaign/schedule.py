"""Schedule: which fresh start of a campaign comes next, as a pure function of what is known; how
many there were, how long they took, and whether another is allowed.

What is asked for depends on the judgements alone: which probes are open, and of which other builds
they want a control first. `perfgate.campaign.starter` makes the starts.

A group is one scenario's campaign in one session. What sharing saved is counted, not estimated: a
start that served three probes stands for three. Only the seconds saved are worked out, from the
starts of this session that became ready.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from perfgate.campaign.budget import Budget
from perfgate.core.verdict import FIRST_LOOK, Against
from perfgate.judging.rules.paired import AB_RULE
from perfgate.runs.record import GroupSeconds, GroupStarts
from perfgate.scenarios.probe import Probe

# Which build a start is of: the machine's own reference, the build under test, a control: the
# baseline's build or the anchor's; build A or B of an A/B; or the build under test in turns with
# another scenario, for a claim about both.
StartRole = Literal["reference", "new", "baseline_control", "anchor_control", "a", "b", "claim"]

# The most controls of one build, in the order N1 | N2 | C1 C2 N3 | N4 C3 (statistics §2).
MOST_CONTROLS = 3
# In the order in which the controls of one round are made.
CONTROL_ROLES: dict[Against, StartRole] = {
    "baseline": "baseline_control",
    "anchor": "anchor_control",
}
_CONTROLLED: dict[StartRole, Against] = {role: against for against, role in CONTROL_ROLES.items()}
# What a disturbed start of these leaves unmeasured is measured again at once, in its place.
KEEPS_ITS_PLACE: tuple[StartRole, ...] = ("reference", "a", "b", "claim")


def controlled_by(role: StartRole) -> Against | None:
    """What the build of a control start is compared as; None: the start is no control."""
    return _CONTROLLED.get(role)


@dataclass(frozen=True)
class Schedule:
    """The order of the starts of one campaign. Nothing is judged within a round.

    Attributes:
        opening: the first round.
        further: the rounds after it, over and over, while the judgement leaves a probe open.
        tested: the role whose measurements are judged.
        most_rounds: rounds, at most; None: as many starts as the rule allows.
        beside: the role whose build is up at the same time as each start of `tested`, so that load
            takes turns on both in short blocks; None: each start is alone.
    """

    opening: tuple[StartRole, ...] = ("new",)
    further: tuple[tuple[StartRole, ...], ...] = (("new",),)
    tested: StartRole = "new"
    most_rounds: int | None = None
    beside: StartRole | None = None


# Each two starts of an A/B are a pair: A B | B A | A B … (statistics §10).
AB = Schedule(("a", "b"), (("b", "a"), ("a", "b")), "b", AB_RULE.most)
# What is started for claims in turns is asked for by the claims.
CLAIMS = Schedule((), (), "claim")


def around_own_reference(starts: int) -> Schedule:
    """The schedule of a scenario that measures its own reference in this session.

    Args:
        starts: fresh starts of the reference, around the first of the build under test, so that a
            drifting machine touches both alike.
    """
    first, rest = _starts("reference", starts // 2), _starts("reference", starts - starts // 2)
    return Schedule((*first, "new", *rest))


def taking_turns(references: int, most: int) -> Schedule:
    """The schedule of a scenario whose references show the noise: R R N N R R N N R R | N N.

    The opening reads the same backwards, so that a drift of the machine cancels out; what is still
    open then gets new starts, as far apart as the rule looks (statistics §9).

    Args:
        references: fresh starts of the reference.
        most: those of the build under test, at most.
    """
    first = min(FIRST_LOOK, most)
    outer = round(references / 3)
    outside, middle = _starts("reference", outer), _starts("reference", references - 2 * outer)
    pair, odd = _starts("new", first // 2), _starts("new", first % 2)
    together = 2 if (most - first) % 2 == 0 else 1
    return Schedule((*outside, *pair, *middle, *odd, *pair, *outside), (_starts("new", together),))


# Both builds are up in each start, and each start is judged.
BLOCKS = Schedule(beside="reference")
AB_BLOCKS = Schedule(("b",), (("b",),), "b", AB_RULE.most, "a")


def _starts(role: StartRole, count: int) -> tuple[StartRole, ...]:
    return (role,) * count


@dataclass(frozen=True)
class LoopState:
    """All that the next start of a campaign depends on.

    Attributes:
        schedule: the order of its starts.
        due: the starts of this round that are not made yet.
        serves: role → the probes that a start of it would serve now.
        allowed: the roles of which another start is allowed, and can be made.
        judged: rounds that were judged.
    """

    schedule: Schedule
    due: tuple[StartRole, ...]
    serves: Mapping[StartRole, tuple[Probe, ...]]
    allowed: frozenset[StartRole] = frozenset()
    judged: int = 0


@dataclass(frozen=True)
class StartRequest:
    """One fresh start to be made.

    Attributes:
        role: which build it is of.
        probes: what is to be measured on it.
        then: the starts of its round that come after it; empty: then it is judged.
        beside: the start of the other build that is up at the same time; None: it is alone.
    """

    role: StartRole
    probes: tuple[Probe, ...]
    then: tuple[StartRole, ...] = ()
    beside: "StartRequest | None" = None


def next_start(state: LoopState) -> StartRequest | None:
    """The start that comes next; None: no other is wanted, or allowed.

    After a judgement one control of each build that is wanted comes before the next start of the
    build under test, and each round is judged: N1 | N2 | C1 | C2 | N3 | N4 | C3 (statistics §2).
    """
    due = list(state.due or _next_round(state))
    while due:
        role = due.pop(0)
        if probes := state.serves.get(role):
            return StartRequest(role, probes, tuple(due), _beside(state.schedule, probes))
    return None


def _beside(schedule: Schedule, probes: tuple[Probe, ...]) -> StartRequest | None:
    """The start of the other build that is up with one: of a reference, load alone is measured."""
    measured = tuple(probe for probe in probes if probe.is_load or schedule.beside != "reference")
    return StartRequest(schedule.beside, measured) if schedule.beside and measured else None


def _next_round(state: LoopState) -> tuple[StartRole, ...]:
    schedule, most = state.schedule, state.schedule.most_rounds
    controls = tuple(
        role for role in CONTROL_ROLES.values() if role in state.allowed and state.serves.get(role)
    )
    if controls:
        return controls
    if not schedule.further or (most is not None and state.judged >= most):
        return ()
    later = schedule.further[(state.judged - 1) % len(schedule.further)]
    return tuple(role for role in later if role in state.allowed)


# Fresh starts of one role made again because something disturbed them, at most.
_MOST_REPEATS = 2
# Fresh starts made again, elsewhere if possible, because the machine failed and not the build.
_MOST_LOST = 1


@dataclass
class Start:
    """One fresh start of a campaign.

    Attributes:
        role: which build it is of.
        number: which start of the campaign it is, from 1.
        again: whether it was made because the one of this role before it was disturbed or lost.
        serves: whether a server is started, for at least one probe.
        served: probes that were measured on that server.
        offline: measurements of programs that have the engine inside, each a start of its own.
        began: when it had what it needs of the machine, on the monotonic clock; None: never.
        ready_s: seconds until it could be measured; None: it never was.
        spent_s: seconds from its begin to its end; waiting for leases is not part of it.
        disturbed: whether anything measured on it was disturbed, or the machine failed: its work is
            to be made again.
    """

    role: StartRole
    number: int = 1
    again: bool = False
    serves: bool = True
    served: int = 0
    offline: int = 0
    began: float | None = None
    ready_s: float | None = None
    spent_s: float = 0.0
    disturbed: bool = False

    @property
    def made(self) -> int:
        """Starts of the engine in it."""
        return 0 if self.began is None else int(self.serves) + self.offline

    @property
    def without_sharing(self) -> int:
        """Starts that it stands for, if every probe had one of its own."""
        return max(self.made, self.served + self.offline)

    def seconds(self) -> float:
        """Since it began."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    def end(self) -> None:
        """Close its account."""
        self.spent_s = self.seconds()


@dataclass
class Starts:
    """The starts of one campaign so far.

    Attributes:
        budget_s: the scenario's seconds, after which no further start is made; None: they do not
            count. The machine's own reference is no part of them.
        budget: the session's time; None: as long as it needs.
        planned: starts that were expected when the group began.
        synthetic: whether a start had GPUs that are made up.
        lost: starts that the machine lost.
    """

    budget_s: float | None = None
    budget: Budget | None = None
    planned: int = 0
    synthetic: bool = False
    made: list[Start] = field(default_factory=list)
    lost: int = 0

    def begin(self, role: StartRole, *, serves: bool = True) -> Start:
        """Open the account of another start."""
        before = next((one for one in reversed(self.made) if one.role == role), None)
        is_again = before is not None and before.disturbed
        self.made.append(Start(role, len(self.made) + 1, is_again, serves))
        return self.made[-1]

    def lose(self) -> bool:
        """Whether a start that the machine lost may be made again; each is asked about once."""
        self.lost += 1
        return self.lost <= _MOST_LOST

    def repeats(self, role: StartRole) -> bool:
        """Whether the last start of a role, which was disturbed, is to be made again."""
        return self._disturbed(role) <= _MOST_REPEATS

    def _disturbed(self, role: StartRole) -> int:
        return sum(one.disturbed for one in self.made if one.role == role)

    def allows(self, role: StartRole, most: int | None) -> bool:
        """Whether another start is allowed.

        Args:
            role: what it is of.
            most: starts of that role, at most; a control has a limit of its own; None: no limit.
        """
        if not self.has_time:
            return False
        if controlled_by(role) is not None:
            most = MOST_CONTROLS
        made = sum(one.role == role for one in self.made)
        return most is None or made - min(self._disturbed(role), _MOST_REPEATS) < most

    @property
    def has_time(self) -> bool:
        """Whether the scenario's and the session's time allow another start."""
        return not (self.out_of_time or self.beyond_budget())

    @property
    def out_of_time(self) -> bool:
        """Whether the scenario's own time is used up."""
        return self.budget_s is not None and self._counted_s >= self.budget_s

    @property
    def _counted_s(self) -> float:
        return sum(one.spent_s for one in self.made if one.role != "reference")

    def beyond_budget(self) -> str | None:
        """Why the session's time allows no further start; None: it does."""
        return None if self.budget is None else self.budget.no_more(self.mean_s())

    def mean_s(self) -> float | None:
        """Seconds that one start took with all that was measured on it; None: none was made."""
        spent = [one.spent_s for one in self.made if one.began is not None]
        return fmean(spent) if spent else None

    def why_no_more(self, *, undecided: bool, is_open: bool) -> Iterator[str]:
        """What kept the campaign from deciding a probe, beside the numbers.

        Args:
            undecided: whether its numbers ask for another start.
            is_open: whether another start would serve it.
        """
        if undecided and self.out_of_time:
            yield f"no more starts: {self._counted_s:.0f} s used of gate.budget_s {self.budget_s:g}"
        if is_open and (reason := self.beyond_budget()):
            yield reason


def totals(campaigns: Iterable[Starts]) -> tuple[GroupStarts, GroupSeconds]:
    """Starts and seconds of one group's campaigns, as its record has them."""
    found = list(campaigns)
    starts = [start for one in found for start in one.made]
    ready = [one.ready_s for one in starts if one.serves and one.ready_s is not None]
    made, without = sum(one.made for one in starts), sum(one.without_sharing for one in starts)
    saved = (without - made) * fmean(ready) if ready else 0.0
    return GroupStarts(
        planned=sum(one.planned for one in found),
        made=made,
        without_sharing=without,
        again=sum(one.made for one in starts if one.again),
        controls=sum(one.made for one in starts if controlled_by(one.role) is not None),
    ), GroupSeconds(
        spent=round(sum(one.spent_s for one in starts), 1),
        starting=round(sum(ready), 1),
        saved=round(saved, 1),
    )
