"""Noise of one fresh start: its constants, Student's t, and what a history tells of it.

All values and sigmas are on the log scale of `rules.scale` (0.005 = 0.5 %). One value is one fresh
start of the engine: repetitions on one server share that start's luck and are averaged before they
come here. Formulas: statistics §1 and §2.
scipy is loaded with the first quantile: that takes half as long as all of pytest and perfgate, and
a session that collects, skips or fails before anything is judged needs none of it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import median

from perfgate.core.errors import InputError
from perfgate.core.verdict import Rule
from perfgate.judging.rules.scale import as_number

# The smallest detectable loss is one that is missed in one pipeline of twenty.
MISSED = 0.05

# Outliers of a baseline are pulled in to so many sigma from its median (statistics §2).
CLIP = 2.0
# Of fewer nobody knows which one is the outlier.
FEWEST = 3

# Share of the variance that all starts of a session have in common, where nobody knows better; a
# wrong one costs little (statistics §1 and §2).
BETWEEN = 0.3

# A machine that shows its own noise (`noise: measured`, statistics §9): what one of its starts is
# taken to vary by before it has shown more, how many starts that is worth, and the forced band, as
# a share, from which on a PASS would claim hardly anything.
OWN_SIGMA = 0.03
OWN_DOF = 2.0
WIDEST_BAND = 0.25

# What the prior weighs, in differences within a session and between sessions.
_PRIOR_WITHIN = 10.0
_PRIOR_BETWEEN = 5.0
# What a difference weighs: neighbours share a start, or a session.
_WEIGHT_WITHIN = 0.7
_WEIGHT_BETWEEN = 0.67

# A difference counts as 2.5 standard deviations at most; E[min(z², 2.5²)] = 0.94.
_CLIP_SQUARED = 6.25
_CLIPPED_MEAN = 0.94
_FEWEST_FOR_MAD = 5
_LEAST_OF_PRIOR = 0.25  # of the prior's variance, where the differences say less
_LEAST_BETWEEN = 0.1  # of the prior's variance between sessions

# The share between sessions is taken from the history where it has so many differences.
_FEWEST_WITHIN = 8
_FEWEST_BETWEEN = 5
_LEAST_SHARE, _LARGEST_SHARE = 0.1, 0.7

# Sessions of one build and one probe, oldest first; of each the losses of its starts, in order.
Sessions = Sequence[Sequence[float]]


@dataclass(frozen=True)
class RunNoise:
    """The noise of one fresh start that a test goes by.

    Attributes:
        sigma: noise of one start on the log scale, before this baseline's own spread; None: the
            default of the metric's family.
        between: the share of its variance that a whole session has in common.
        dof: how many observations `sigma` is worth; None: what the rule says.
        widen: whether the band is widened to what the noise lets the gate resolve.
        note: what a person should know of where it comes from; empty: nothing.
        differences: how many differences of unchanged starts `sigma` was learnt from.
    """

    sigma: float | None = None
    between: float = BETWEEN
    dof: float | None = None
    widen: bool = False
    note: str = ""
    differences: int = 0

    def rule(self, rule: Rule) -> Rule:
        """The rule that tests with this noise go by."""
        return rule if self.dof is None else replace(rule, prior_dof=self.dof)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, dof: float) -> float:
    """Quantile of Student's t distribution; of the normal one for infinite `dof`."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(probability) if math.isinf(dof) else stdtrit(dof, probability))


def t_tail(t: float, dof: float) -> float:
    """P(T >= t) of Student's t distribution; of the normal one for infinite `dof`."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-t) if math.isinf(dof) else stdtr(dof, -t))


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


def learnt_noise(histories: Iterable[Sessions], prior: float) -> RunNoise:
    """Estimate the noise from histories that share theirs, each of one build and probe.

    w = (x[i+1] - x[i]) / √2 of successive starts of a session; g the same of the medians of
    successive sessions of one history. With e0 = (1-ρ0) σ0² and k the mean of 1/starts over the
    sessions behind g:

        se² = (10 e0 + 0.7 Σ clip(w)) / (10 + 0.7 n_w)
        st² = (5 t0 + 0.67 Σ clip(g)) / (5 + 0.67 n_g),  t0 = ρ0 σ0² + k e0
        sb² = max(st² - k se², 0.1 ρ0 σ0²)
        σ² = se² + sb²,  ρ = sb²/σ² within 0.1…0.7; ρ0 with under 8 w or under 5 g

    Args:
        histories: on the log scale of `rules.scale`; a session without starts counts for
            nothing, and one session alone tells nothing of how sessions differ.
        prior: σ0, that of the metric's family, on the log scale.

    Raises:
        InputError: a prior that is no fraction between 0 and 1.
    """
    variance = checked_sigma(prior) ** 2
    own, shared = (1 - BETWEEN) * variance, BETWEEN * variance
    within: list[float] = []
    between: list[float] = []
    shares: list[float] = []
    for history in histories:
        sessions = [session for session in history if session]
        for session in sessions:
            within += _differences(session)
        if len(sessions) > 1:
            between += _differences([median(session) for session in sessions])
            shares += [1 / len(session) for session in sessions]
    of_start = _shrunk(within, own, _PRIOR_WITHIN, _WEIGHT_WITHIN)
    of_session = shared
    if between:
        k = math.fsum(shares) / len(shares)
        total = _shrunk(between, shared + k * own, _PRIOR_BETWEEN, _WEIGHT_BETWEEN)
        of_session = max(total - k * of_start, _LEAST_BETWEEN * shared)
    share = BETWEEN
    if len(within) >= _FEWEST_WITHIN and len(between) >= _FEWEST_BETWEEN:
        share = of_session / (of_start + of_session)
        share = min(max(share, _LEAST_SHARE), _LARGEST_SHARE)
    learnt_from = len(within) + len(between)
    return RunNoise(math.sqrt(of_start + of_session), share, differences=learnt_from)


def _differences(values: Sequence[float]) -> list[float]:
    """Of neighbours, each with the variance of one value."""
    return [(after - before) / math.sqrt(2) for before, after in pairwise(values)]


def _shrunk(differences: Sequence[float], prior: float, weight: float, each: float) -> float:
    """The variance of the differences, clipped, and pooled with a prior worth `weight`."""
    if not differences:
        return prior
    scale = prior
    if len(differences) >= _FEWEST_FOR_MAD:
        spread = 1.4826 * median([abs(difference) for difference in differences])
        scale = max(_LEAST_OF_PRIOR * prior, spread**2)
    most = _CLIP_SQUARED * scale
    squares = math.fsum([min(one * one, most) for one in differences]) / _CLIPPED_MEAN
    return (weight * prior + each * squares) / (weight + each * len(differences))
