"""Schedule: the order of a campaign's fresh starts, as a value. Pure.

What is asked for depends on the judgements alone: which probes are open, and of which other builds
they want a control first. The starts themselves are made by `perfgate.campaign.campaign`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from perfgate.core.rule import FIRST_LOOK
from perfgate.core.verdict import Against

# Which build a start is of: the machine's own reference, the build under test, a control: the
# baseline's build or the anchor's; build A or B of an A/B; or the build under test in turns with
# another scenario, for a claim about both.
StartRole = Literal["reference", "new", "baseline_control", "anchor_control", "a", "b", "claim"]

# The starts of an A/B, each two of them a pair (statistics §10).
AB_ORDER: tuple[StartRole, ...] = ("a", "b", "b", "a") * 3
# The most controls of one build, in the order N1 | N2 | C1 C2 N3 | N4 C3 (statistics §2).
MOST_CONTROLS = 3
# In the order in which the controls of one round are made.
_CONTROLS: dict[Against, StartRole] = {
    "baseline": "baseline_control",
    "anchor": "anchor_control",
}
_CONTROLLED: dict[StartRole, Against] = {role: against for against, role in _CONTROLS.items()}


def turns(sides: tuple[str, str], pair: int) -> tuple[str, str]:
    """The order of two sides' starts in a pair, counted from 0: turn by turn, as in `AB_ORDER`."""
    return sides if pair % 2 == 0 else (sides[1], sides[0])


def controlled_by(role: StartRole) -> Against | None:
    """What the build of a control start is compared as; None: the start is no control."""
    return _CONTROLLED.get(role)


def role_of(against: Against) -> StartRole:
    """The role of a control of the build that is compared as `against`.

    Raises:
        KeyError: nothing is controlled so.
    """
    return _CONTROLS[against]


@dataclass(frozen=True)
class Schedule:
    """The order of the starts of one campaign.

    Attributes:
        opening: the starts made before anything is judged.
        further: the starts of the build under test made together where the judgement leaves a probe
            open; nothing is judged between them.
    """

    opening: tuple[StartRole, ...] = ("new",)
    further: tuple[StartRole, ...] = ("new",)

    def after(self, *, new: bool, controls: Collection[Against]) -> tuple[StartRole, ...]:
        """The starts that come after a judgement; empty: none is wanted.

        One control of each build that is wanted comes before the next start of the build under
        test, and each round is judged: so it becomes N1 | N2 | C1 | C2 | N3 | N4 | C3
        (statistics §2).

        Args:
            new: whether another start of the build under test may decide a probe.
            controls: the builds of which a probe wants a control first.
        """
        wanted = tuple(role for against, role in _CONTROLS.items() if against in controls)
        return wanted or (self.further if new else ())


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
    return Schedule((*outside, *pair, *middle, *odd, *pair, *outside), _starts("new", together))


def _starts(role: StartRole, count: int) -> tuple[StartRole, ...]:
    return (role,) * count
