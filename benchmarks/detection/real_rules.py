"""The rules of today on real series: walking along online, and Otava with the whole series."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.detection import apache_otava
from benchmarks.detection.labelled import AFTER, BEFORE, Labelled
from benchmarks.detection.online import MOST_RUNS, replay
from benchmarks.detection.rules import fixed_5_percent, mann_whitney, tensorrt_llm, welch

Alarms = dict[str, tuple[int, ...]]
Differs = Callable[[Sequence[float], Sequence[float]], bool]

_OTAVA_LAST = 200


def _both_ways(
    rule: Callable[..., np.ndarray],
) -> Differs:
    def differs(base: Sequence[float], new: Sequence[float]) -> bool:
        pair = np.array([base]), np.array([new])
        return bool(rule(*pair, True)[0] or rule(*pair, False)[0])

    return differs


def by_rules(series: Sequence[Labelled]) -> Iterator[tuple[str, float, Alarms]]:
    restarting = (
        # With five values at least this is the reference that the data's own notes give.
        ("fixed 5 % of the mean of the last 10", fixed_5_percent, 5, 10, 1),
        ("fixed 5 % of one run", fixed_5_percent, 1, 1, 1),
        ("Welch 90 % interval, 3 against 3", welch, 3, 3, 3),
        # With five new values at most, p < 0.002 can be reached from eight accepted ones on.
        ("Mann-Whitney p < 0.002, up to 30 against 5", mann_whitney, 8, 30, 5),
    )
    for name, rule, least, most, new in restarting:
        differs = _both_ways(rule)
        yield (
            name,
            float(new),
            {
                one.name: replay(one.values, differs, least=least, most=most, new=new)
                for one in series
            },
        )
    for threshold in (0.05, 0.10):
        differs = _both_ways(tensorrt_llm(threshold))
        yield (
            f"TensorRT-LLM-like {threshold:.0%}, last 90 points",
            1.0,
            {one.name: first_of_each(standing(one.values, differs)) for one in series},
        )


def standing(values: Sequence[float], differs: Differs) -> list[int]:
    """Points that a rule without a new start calls changed, from the tenth on."""
    return [
        at
        for at in range(10, len(values))
        if differs(values[max(0, at - 90) : at], values[at : at + 1])
    ]


def first_of_each(standing: Sequence[int]) -> tuple[int, ...]:
    """Points in a row are one alarm."""
    return tuple(at for at in standing if at - 1 not in standing)


def by_otava(series: Sequence[Labelled], python: Path) -> Iterator[tuple[str, float, Alarms]]:
    whole = apache_otava.change_points(python, [one.values for one in series])
    offline = {
        one.name: tuple(index for index, _ in points)
        for one, points in zip(series, whole, strict=True)
    }
    yield "Otava p=0.001, offline: sees the whole series", 1.0, offline
    yield (
        "Otava p=0.001, online: again at every point",
        1.0,
        {one.name: _otava_online(one.values, python) for one in series},
    )


def _otava_online(values: Sequence[float], python: Path) -> tuple[int, ...]:
    """Otava on the last 200 points at every point, with four later ones: an alarm is a change point
    among the newest five that is not within three before or ten after an earlier alarm."""
    ends = list(range(10 + MOST_RUNS, len(values) + 1))
    windows = [values[max(0, end - _OTAVA_LAST) : end] for end in ends]
    alarms: list[int] = []
    for end, points in zip(ends, apache_otava.change_points(python, windows), strict=True):
        for index, _ in points:
            at = max(0, end - _OTAVA_LAST) + index
            known = any(-BEFORE <= at - earlier <= AFTER for earlier in alarms)
            if at >= end - MOST_RUNS and not known:
                alarms.append(at)
    return tuple(alarms)
