"""Schedule: which fresh start of a campaign comes next, as a pure function of what is known.

What is asked for depends on the judgements alone: which probes are open, and of which other builds
they want a control first. `perfgate.campaign.starter` makes the starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from perfgate.core.rule import FIRST_LOOK
from perfgate.core.verdict import Against
from perfgate.judging.rules.paired import AB_RULE
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
_KEEPS_ITS_PLACE: tuple[StartRole, ...] = ("reference", "a", "b", "claim")


def turns(sides: tuple[str, str], pair: int) -> tuple[str, str]:
    """The order of two sides' starts in a pair, counted from 0: A B, B A, A B, …."""
    return sides if pair % 2 == 0 else (sides[1], sides[0])


def controlled_by(role: StartRole) -> Against | None:
    """What the build of a control start is compared as; None: the start is no control."""
    return _CONTROLLED.get(role)


def keeps_its_place(role: StartRole) -> bool:
    """Whether what a disturbed start of a role leaves unmeasured is measured again at once."""
    return role in _KEEPS_ITS_PLACE


@dataclass(frozen=True)
class Schedule:
    """The order of the starts of one campaign. Nothing is judged within a round.

    Attributes:
        opening: the first round.
        further: the rounds after it, over and over, while the judgement leaves a probe open.
        tested: the role whose measurements are judged.
        most_rounds: rounds, at most; None: as many starts as the rule allows.
    """

    opening: tuple[StartRole, ...] = ("new",)
    further: tuple[tuple[StartRole, ...], ...] = (("new",),)
    tested: StartRole = "new"
    most_rounds: int | None = None


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
    """

    role: StartRole
    probes: tuple[Probe, ...]
    then: tuple[StartRole, ...] = field(default=())


def next_start(state: LoopState) -> StartRequest | None:
    """The start that comes next; None: no other is wanted, or allowed.

    After a judgement one control of each build that is wanted comes before the next start of the
    build under test, and each round is judged: N1 | N2 | C1 | C2 | N3 | N4 | C3 (statistics §2).
    """
    due = list(state.due or _next_round(state))
    while due:
        role = due.pop(0)
        if probes := state.serves.get(role):
            return StartRequest(role, probes, tuple(due))
    return None


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
