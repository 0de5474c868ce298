"""Together: whether everything on a host got worse at once, so that the host is to be looked at.

It is a suspicion for a person to check, and no verdict: an engine that lost everywhere looks just
the same, and stays a REGRESSION.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from perfgate.core.verdict import percent
from perfgate.judging.rules.noise import median

# With fewer scenarios "nearly all" says little; and a change of the engine that touches some of its
# features leaves at least a fifth of the scenarios alone more often than a slow host does.
_FEWEST_SCENARIOS = 4
_NEARLY_ALL = 0.8


@dataclass(frozen=True)
class Moved:
    """How one metric of one scenario moved against its baseline.

    Attributes:
        scenario: id of the scenario.
        metric: canonical name.
        change: signed change of the value, as in `perfgate.core.verdict.Judgement`.
        lost: whether the judgement's interval excludes "no loss".
    """

    scenario: str
    metric: str
    change: float
    lost: bool


def moved_together(moves: Sequence[Moved]) -> str:
    """The suspicion that the host moved and not the build, in one sentence; "" if there is none.

    There is one if at least four scenarios were judged and at least four fifths of them lost
    something beyond doubt. Give performance only: accuracy does not depend on a host's speed.

    Args:
        moves: every judged metric, also those that stayed as they were.
    """
    judged = {move.scenario for move in moves}
    losses: dict[str, float] = {}
    for move in moves:
        if move.lost:
            losses[move.scenario] = max(losses.get(move.scenario, 0.0), abs(move.change))
    if len(judged) < _FEWEST_SCENARIOS or len(losses) < _NEARLY_ALL * len(judged):
        return ""
    sizes = list(losses.values())
    smallest, largest, middle = map(_share, (min(sizes), max(sizes), median(sizes)))
    return (
        f"{len(losses)} of {len(judged)} scenarios got worse at once, by {smallest} to {largest} "
        f"(median {middle}, the worst metric of each): this may be the host and not the build; "
        "look at its clocks and its neighbours, and measure the baseline's commit on it; the "
        "verdicts stand"
    )


def _share(share: float) -> str:
    return percent(share, sign="")
