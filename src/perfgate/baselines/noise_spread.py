"""Noise spread: noise between fresh starts and within one, from repeated measurements of one build.

Pure. Everything is on the log scale (0.005 = 0.5 %), where it does not matter whether larger values
are better. The rule that uses the result: docs/reference/verdicts.md, "The rule for
performance"; the estimate: docs/how-to/calibrate.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.gate.noise import t_quantile

FEWEST_STARTS = 5

_FALSELY_TOLD = 0.01  # share of unremarkable series with a start that is told as outlying

Values = Sequence[Sequence[float]]  # one inner sequence per fresh start, its repeats in order


@dataclass(frozen=True)
class Spread:
    """The noise of one metric of one probe.

    Attributes:
        between: standard deviation between fresh starts, on the log scale.
        within: standard deviation of the repeats on one start; None: nothing was repeated.
        sigma: standard deviation of one fresh start that is measured once, as the gate does.
        dof: degrees of freedom behind `sigma`.
        values: what it was estimated from, in the metric's unit, one inner tuple per fresh start.
    """

    between: float
    within: float | None
    sigma: float
    dof: float
    values: tuple[tuple[float, ...], ...]


def spread(metric: str, values: Values) -> Spread:
    """Estimate the noise of one fresh start: a one-way random effects model, by its moments.

    With M the variance of the starts' means, W the pooled variance of the repeats (the mean of the
    starts' own where all have as many) and h the mean of 1/R over the starts:
    within² = W, between² = max(0, M - h W), sigma² = between² + within². The degrees of freedom of
    that sum of mean squares are those of Satterthwaite (1946, Biometrics Bulletin 2:110-114); where
    between² is 0 they are those of W. Without repeats sigma² = M with N - 1 degrees of freedom.
    A start that lies far out is used like any other.

    Args:
        metric: canonical name, for messages.
        values: one inner sequence per fresh start, each of one value or more.

    Raises:
        InputError: fewer than `FEWEST_STARTS` starts, a value that has no logarithm, or no spread.
    """
    logs = _logs(metric, values)
    if len(logs) < FEWEST_STARTS:
        raise InputError(
            f"too few fresh starts to know the noise of {metric}",
            found=len(logs),
            expected=f"{FEWEST_STARTS} or more",
        )
    means = _squares([fmean(start) for start in logs]) / (len(logs) - 1)
    repeated = [start for start in logs if len(start) > 1]
    dof_within = sum(len(start) - 1 for start in repeated)
    if not dof_within:
        found = Spread(math.sqrt(means), None, math.sqrt(means), len(logs) - 1, _frozen(values))
    else:
        within = sum(map(_squares, repeated)) / dof_within
        share = fmean(1 / len(start) for start in logs)
        between = max(0.0, means - share * within)
        total = between + within
        dof = float(dof_within)
        if between > 0:
            rest = (1 - share) * within
            dof = total**2 / (means**2 / (len(logs) - 1) + rest**2 / dof_within)
        found = Spread(
            math.sqrt(between), math.sqrt(within), math.sqrt(total), dof, _frozen(values)
        )
    if found.sigma == 0:
        raise InputError(
            f"every measurement of {metric} gave the same value, so it shows no noise",
            found=values[0][0],
            hint="a value that never moves is no measurement of speed, or is rounded",
        )
    return found


def outlying(metric: str, values: Values) -> tuple[int, ...]:
    """The starts, from 1, whose mean lies far from the others'; they are told, never dropped.

    Each is compared with the others by t = (x - mean) / (s sqrt(1 + 1/(N - 1))), which is the test
    of Grubbs (1969) in another form: one series of unremarkable starts in a hundred has one that is
    told. s is at least half the prior of the metric's family, so that a lucky series of equal
    values makes no outlier of an ordinary one.
    """
    means = [fmean(start) for start in _logs(metric, values)]
    least = lookup(metric).family.sigma / 2
    limit = t_quantile(1 - _FALSELY_TOLD / (2 * len(means)), len(means) - 2)
    found = []
    for number, mean in enumerate(means, start=1):
        others = means[: number - 1] + means[number:]
        spread_of = max(least, math.sqrt(_squares(others) / (len(others) - 1)))
        if abs(mean - fmean(others)) > limit * spread_of * math.sqrt(1 + 1 / len(others)):
            found.append(number)
    return tuple(found)


def _logs(metric: str, values: Values) -> list[list[float]]:
    for number, start in enumerate(values, start=1):
        for value in start:
            if not (math.isfinite(value) and value > 0):
                raise InputError(
                    f"a value of {metric} on fresh start {number} cannot be used",
                    found=value,
                    expected=f"a finite number of {lookup(metric).unit} above 0",
                )
        if not start:
            raise InputError(f"fresh start {number} has no value of {metric}")
    return [[math.log(value) for value in start] for start in values]


def _squares(values: Sequence[float]) -> float:
    """Sum of the squared deviations from their mean."""
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values)


def _frozen(values: Values) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, start)) for start in values)
