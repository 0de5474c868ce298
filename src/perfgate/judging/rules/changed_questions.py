"""Changed questions: which questions a new build answers otherwise than the baseline. Pure.

They are told, not judged: `perfgate.judging.rules.accuracy` judges how many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.verdict import Against

MOST = 200  # questions that are named on each side; a broken build changes nearly all
_HALF = 0.5


@dataclass(frozen=True)
class ChangedQuestions:
    """The questions behind one score that one build answers rightly and the other wrongly.

    A question counts where the share of evaluations with a right answer moved by half or more.

    Attributes:
        metric: canonical name of the score, with task and filter.
        against: what the baseline is.
        asked: how many questions there are.
        lost: how many were right before and are wrong now.
        gained: how many were wrong before and are right now.
        lost_keys: the keys of those lost, at most `MOST`, in order.
        gained_keys: the keys of those gained, likewise.
    """

    metric: str
    against: Against
    asked: int
    lost: int
    gained: int
    lost_keys: tuple[str, ...]
    gained_keys: tuple[str, ...]


def changed_questions(
    metric: str,
    baseline: Sequence[Mapping[str, bool]],
    new: Sequence[Mapping[str, bool]],
    against: Against = "baseline",
) -> ChangedQuestions | None:
    """What changed; None: an evaluation has no answers, or was asked other questions.

    Args:
        metric: canonical name of the score.
        baseline: question key → answered rightly, of each evaluation of the baseline.
        new: the same of the new build.
        against: what the baseline is.
    """
    every = [*baseline, *new]
    if not baseline or not new or not every[0]:
        return None
    if any(one.keys() != every[0].keys() for one in every):
        return None
    lost, gained = [], []
    for key in sorted(every[0]):
        change = _share(key, new) - _share(key, baseline)
        if change <= -_HALF:
            lost.append(key)
        elif change >= _HALF:
            gained.append(key)
    return ChangedQuestions(
        metric,
        against,
        len(every[0]),
        len(lost),
        len(gained),
        tuple(lost[:MOST]),
        tuple(gained[:MOST]),
    )


def _share(key: str, evaluations: Sequence[Mapping[str, bool]]) -> float:
    return sum(bool(one[key]) for one in evaluations) / len(evaluations)
