"""Noise of one run: pooling it, winsorising with it, and what can be told apart from it.

All values and sigmas are on the log scale of `rules.scale` (0.005 = 0.5 %). One value is
one fresh start of the engine: repetitions on one server share that start's luck and are averaged
before they come here. Formulas: docs/reference/verdicts.md, "The rule for performance".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from perfgate.core.errors import InputError
from perfgate.judging.rules.distributions import (
    normal_quantile,
    normal_share,
    student_quantile,
    student_share,
)
from perfgate.judging.rules.scale import as_number

# The smallest detectable loss is one that is missed in one pipeline of twenty.
MISSED = 0.05

# Outliers of a baseline are pulled in to so many sigma from its median (statistics §2); of two
# values neither is the outlier, and of four the MAD says little.
CLIP = 2.0
_FEWEST_TO_WINSORISE = 3
_FEWEST_FOR_MAD = 5

# Share of the variance that all starts of a session have in common, where nobody knows better; a
# wrong one costs little (statistics §1 and §2).
BETWEEN = 0.3

# A machine that shows its own noise (`noise: measured`, statistics §9): what one of its starts is
# taken to vary by before it has shown more, how many starts that is worth, and the forced band, as
# a share, from which on a PASS would claim hardly anything.
OWN_SIGMA = 0.03
OWN_DOF = 2.0
WIDEST_BAND = 0.25
_FEWEST_WITHOUT_PRIOR = 3


@dataclass(frozen=True)
class Noise:
    """Noise of one run on the log scale.

    Attributes:
        sigma: standard deviation of one run.
        dof: degrees of freedom behind it.
        source: where it comes from, in words.
        between: the share ρ of its variance that a whole session has in common.
    """

    sigma: float
    dof: float
    source: str
    between: float = 0.0


@lru_cache(maxsize=1024)
def t_quantile(probability: float, dof: float) -> float:
    """Quantile of Student's t distribution; of the normal one for infinite `dof`."""
    return normal_quantile(probability) if math.isinf(dof) else student_quantile(probability, dof)


def t_tail(t: float, dof: float) -> float:
    """P(T >= t) of Student's t distribution; of the normal one for infinite `dof`."""
    return normal_share(-t) if math.isinf(dof) else student_share(-t, dof)


def checked_sigma(sigma: float) -> float:
    """`sigma` itself.

    Raises:
        InputError: it is not a number above 0 and below 1: from there on it is a percentage that
            was taken for a fraction.
    """
    if not 0 < as_number(sigma) < 1:
        raise InputError(
            "the prior noise of one run cannot be used",
            found=sigma,
            expected="a fraction between 0 and 1, e.g. 0.005 for 0.5 %",
        )
    return sigma


def pooled(prior_sigma: float, prior_dof: float, groups: Sequence[Sequence[float]]) -> Noise:
    """Pool a prior with the spread inside groups of runs of one build each.

    s² = (nu0 s0² + sum (n_g - 1) s_g²) / nu with nu = nu0 + sum (n_g - 1): the mean of an
    inverse-chi-square prior worth nu0 observations and the usual pooled variance.

    Args:
        prior_sigma: s0, log scale.
        prior_dof: nu0; 0 for measured noise only.
        groups: values on the log scale, one group per build; groups of one value add nothing.

    Raises:
        InputError: a prior that is none, or noise to be measured only with no group of at least
            three values, or with values that are all equal.
    """
    if prior_dof < 0:
        raise InputError(
            "the prior of the noise cannot be used",
            found=f"{prior_dof} degrees of freedom",
            expected="0 or more",
        )
    if prior_dof > 0:
        checked_sigma(prior_sigma)
    most = max((len(group) for group in groups), default=0)
    if prior_dof == 0 and most < _FEWEST_WITHOUT_PRIOR:
        raise InputError(
            "too few runs to measure the noise without a prior",
            found=f"at most {most} runs of one build",
            expected=f"{_FEWEST_WITHOUT_PRIOR} or more",
            hint="measure more fresh starts of the baseline, or give a prior",
        )
    dof = prior_dof
    squares = prior_dof * prior_sigma**2 if prior_dof else 0.0
    for group in groups:
        dof += max(len(group) - 1, 0)
        squares += sum_of_squares(group)
    sigma = math.sqrt(squares / dof)
    if sigma == 0:
        raise InputError(
            "all runs gave the same value, so their noise cannot be measured",
            hint="give a prior: a sigma with some degrees of freedom",
        )
    parts = [f"prior {prior_sigma:.2%} with {prior_dof:g} degrees of freedom"] if prior_dof else []
    if dof > prior_dof:
        parts.append(f"spread of {sum(map(len, groups))} runs")
    return Noise(sigma, dof, " and ".join(parts))


def sum_of_squares(values: Sequence[float]) -> float:
    """Sum of squared deviations from the mean, whatever the order of the values.

    `statistics.variance` is as exact, and twenty times as slow.
    """
    if len(values) < 2 or min(values) == max(values):  # a rounded mean may differ from equal values
        return 0.0
    centre = fmean(values)
    return math.fsum([(x - centre) ** 2 for x in values])


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def winsorise(values: Sequence[float], sigma: float) -> tuple[tuple[float, ...], int]:
    """Pull outliers in to median ± 2 r; nothing is dropped (statistics §2).

    r is sigma, from five values on at least 1.4826 MAD. Below three values nothing is changed.

    Returns:
        the values, in order, and how many were pulled in.
    """
    if len(values) < _FEWEST_TO_WINSORISE:
        return tuple(values), 0
    centre, reach = median(values), sigma
    if len(values) >= _FEWEST_FOR_MAD:
        reach = max(reach, 1.4826 * median([abs(x - centre) for x in values]))
    low, high = centre - CLIP * reach, centre + CLIP * reach
    if low <= min(values) and max(values) <= high:
        return tuple(values), 0
    return tuple(min(max(x, low), high) for x in values), sum(not low <= x <= high for x in values)


def standard_error(
    noise: Noise,
    n_base: float,
    n_new: int,
    *,
    sessions: float = 1,
) -> float:
    """Standard error of the mean of new starts of one session against a baseline's mean.

    SEh = s √(ρ (1 + 1/D) + (1-ρ) (1/n_new + 1/n_base)) (statistics §2).

    Args:
        noise: of one start; its `between` is ρ.
        n_base: starts of the baseline; infinite for a number that is taken as exact.
        n_new: new starts, all of one session.
        sessions: D, those behind the baseline.
    """
    shared = noise.between * (1 + 1 / sessions)
    own = (1 - noise.between) * (1 / n_new + 1 / n_base)
    return noise.sigma * math.sqrt(shared + own)


def control_error(noise: Noise, n_new: int, controls: int) -> float:
    """That of new starts against controls of the same session: s √((1-ρ) (1/m + 1/j))."""
    return noise.sigma * math.sqrt((1 - noise.between) * (1 / n_new + 1 / controls))


def smallest_detectable(
    noise: Noise,
    n_base: float,
    n_new: int,
    *,
    alpha: float,
    beta: float = MISSED,
    sessions: float = 1,
) -> float:
    """The smallest true loss that `n_new` runs find but for a share `beta`, on the log scale.

    MDE = (t(1 - alpha, nu) + t(1 - beta, nu)) SE, the minimum detectable effect of a one-sided
    t test.
    """
    reach = t_quantile(1 - alpha, noise.dof) + t_quantile(1 - beta, noise.dof)
    return reach * standard_error(noise, n_base, n_new, sessions=sessions)
