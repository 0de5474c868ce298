"""Simulated verdicts: the gate's rule for many trials at once, in numpy. Draws no numbers itself.

Tests hold it against `rules.controlled_test.decide` and `rules.sequential_test`,
case by case. An IMPROVEMENT counts as the PASS that it is made of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfgate.core.rule import ControlRule, Rule
from perfgate.judging.rules.noise import BETWEEN, CLIP, t_quantile

Floats = NDArray[Any]
Codes = NDArray[np.int8]
Booleans = NDArray[np.bool_]

INCONCLUSIVE, PASS, HOST_SHIFT, REGRESSION = range(4)

_FEWEST_TO_WINSORISE = 3
_FEWEST_FOR_MAD = 5


@dataclass(frozen=True)
class Levels:
    """Baselines of many trials; as `rules.baseline_level.BaselineLevel`, one a trial.

    Attributes:
        centre: mean of each winsorised baseline, shape (trials,), log scale.
        sigma: noise of one start, shape (trials,).
        dof: degrees of freedom behind it.
        n_base: starts of each baseline.
        sessions: sessions behind each.
        between: the share of the variance that a session has in common, as the gate believes.
    """

    centre: Floats
    sigma: Floats
    dof: float
    n_base: float
    sessions: float
    between: float

    def standard_error(self, starts: int) -> Floats:
        """That of the mean of so many new starts of one session."""
        shared = self.between * (1 + 1 / self.sessions)
        own = (1 - self.between) * (1 / starts + 1 / self.n_base)
        return self.sigma * math.sqrt(shared + own)

    def control_error(self, starts: int, controls: int) -> Floats:
        """That of so many new starts against so many controls of the same session."""
        return self.sigma * math.sqrt((1 - self.between) * (1 / starts + 1 / controls))

    def of(self, trials: NDArray[np.intp]) -> "Levels":
        """Those of some of the trials."""
        return Levels(
            self.centre[trials],
            self.sigma[trials],
            self.dof,
            self.n_base,
            self.sessions,
            self.between,
        )


@dataclass(frozen=True)
class Verdicts:
    """What became of each trial.

    Attributes:
        codes: INCONCLUSIVE, PASS, HOST_SHIFT or REGRESSION, shape (trials,).
        at: position in `looks` of the look that decided; the last one where none did.
        looks: (new starts, controls) of each look.
    """

    codes: Codes
    at: Codes
    looks: tuple[tuple[int, int], ...]

    @property
    def new(self) -> NDArray[np.int64]:
        """Fresh starts of the new build in each trial."""
        return np.array([new for new, _ in self.looks])[self.at]

    @property
    def controls(self) -> NDArray[np.int64]:
        """Controls in each trial."""
        return np.array([controls for _, controls in self.looks])[self.at]

    def share(self, *codes: int) -> float:
        """The share of trials with one of the codes."""
        return float(np.isin(self.codes, codes).mean())


def levels(
    base: Floats,
    sigma: float,
    *,
    sessions: float | None = None,
    between: float = BETWEEN,
    prior_dof: float = 10,
) -> Levels:
    """The baselines as `perfgate.judging.rules.performance.baseline_level` makes them.

    Args:
        base: accepted values on the log scale, shape (trials, starts).
        sigma: prior noise of one start.
        sessions: sessions behind each baseline; None: as many as starts.
        between: the share of the variance between sessions.
        prior_dof: how many observations the prior is worth.
    """
    n_base = base.shape[1]
    kept = _winsorised(base, sigma)
    centre = kept.mean(axis=1)
    dof = prior_dof + n_base - 1
    squares = prior_dof * sigma**2 + ((kept - centre[:, None]) ** 2).sum(axis=1)
    return Levels(centre, np.sqrt(squares / dof), dof, n_base, sessions or n_base, between)


def _winsorised(base: Floats, sigma: float) -> Floats:
    n_base = base.shape[1]
    if n_base < _FEWEST_TO_WINSORISE:
        return base
    centre = np.median(base, axis=1, keepdims=True)
    reach = np.full_like(centre, sigma)
    if n_base >= _FEWEST_FOR_MAD:
        mad = np.median(np.abs(base - centre), axis=1, keepdims=True)
        reach = np.maximum(reach, 1.4826 * mad)
    return np.clip(base, centre - CLIP * reach, centre + CLIP * reach)


def controlled(
    against: Levels, new: Floats, controls: Floats, margin: float, rule: ControlRule
) -> Verdicts:
    """`perfgate.judging.rules.controlled_test.decide` for each trial.

    Args:
        against: the baselines.
        new: losses of the new build in the order measured, shape (trials, most starts).
        controls: those of the other build in the same session, shape (trials, most controls).
        margin: the band on the log scale.
        rule: constants and the order of starts.
    """
    codes = np.zeros(len(new), dtype=np.int8)
    at = np.full(len(new), len(rule.looks) - 1, dtype=np.int8)
    open_ = np.arange(len(new))
    for position, (starts, beside) in enumerate(rule.looks):
        found = _look(
            against.of(open_), new[open_, :starts], controls[open_, :beside], margin, rule
        )
        decided = found != INCONCLUSIVE
        codes[open_[decided]] = found[decided]
        at[open_[decided]] = position
        open_ = open_[~decided]
    return Verdicts(codes, at, rule.looks)


def _look(
    against: Levels, new: Floats, controls: Floats, margin: float, rule: ControlRule
) -> Codes:
    h, starts, beside = against.centre, new.shape[1], controls.shape[1]
    t_alpha, t_beta, t_later = (
        t_quantile(1 - rate, against.dof) for rate in (rule.alpha, rule.beta, rule.later_beta)
    )
    loss = new.mean(axis=1) - h
    passed = loss + t_beta * against.standard_error(starts) < margin
    codes = np.zeros(len(new), dtype=np.int8)
    if starts < 2:
        codes[passed] = PASS
        return codes
    later = new[:, 1:].mean(axis=1)
    passed |= later - h + t_later * against.standard_error(starts - 1) < margin
    if beside:
        ordered = np.sort(controls, axis=1)
        lower, upper = ordered[:, (beside - 1) // 2], ordered[:, beside // 2]
        error = against.control_error(starts - 1, beside)
        fit = lower - h <= rule.broken * margin
        shifted = np.zeros_like(passed)
        if beside >= 2:
            moved = lower - h > rule.shift * against.standard_error(1)
            shifted = moved & (later - lower + t_beta * error < margin)
        if beside >= 3:
            shifted |= later - lower + t_later * error < margin
        gaps = new - np.maximum(h, upper)[:, None]
        proved = gaps.min(axis=1) > rule.far * margin
        if beside >= 2:
            proved |= (gaps > rule.half * margin).sum(axis=1) >= rule.needed
        proved &= loss - t_alpha * against.standard_error(starts) > 0
        proved &= later - upper - t_alpha * error > 0
        codes[proved & fit] = REGRESSION
        codes[shifted & fit] = HOST_SHIFT
    codes[passed] = PASS
    return codes


def alone(
    against: Levels, new: Floats, margin: float, rule: Rule, *, required: bool = False
) -> Verdicts:
    """The rule without control, of `perfgate.judging.rules.sequential_test`, for each trial.

    Args:
        against: the baselines.
        new: losses in the order measured, shape (trials, rule.max_runs).
        margin: the band on the log scale.
        rule: error rates and effort.
        required: whether a loss without control is INCONCLUSIVE.
    """
    looks = tuple((count, 0) for count in range(1, rule.max_runs + 1))
    t_low, t_high = (t_quantile(1 - rate, against.dof) for rate in (rule.alpha, rule.beta))
    codes = np.zeros(len(new), dtype=np.int8)
    at = np.full(len(new), len(looks) - 1, dtype=np.int8)
    open_ = np.arange(len(new))
    for position, (starts, _) in enumerate(looks):
        level, values = against.of(open_), new[open_, :starts]
        loss, error = values.mean(axis=1) - level.centre, level.standard_error(starts)
        passed = loss + t_high * error < margin
        lost = np.zeros_like(passed)
        if starts >= 2:
            later = values[:, 1:].mean(axis=1) - level.centre
            lost = ~passed & (loss - t_low * error > 0)
            lost &= later - t_low * level.standard_error(starts - 1) > 0
        codes[open_[passed]] = PASS
        codes[open_[lost]] = INCONCLUSIVE if required else REGRESSION
        at[open_[passed | lost]] = position
        open_ = open_[~(passed | lost)]
    return Verdicts(codes, at, looks)


def together(metrics: Sequence[Verdicts]) -> Verdicts:
    """The verdicts of one probe: it ends with its first REGRESSION, or when all are decided.

    Args:
        metrics: at least one, of the same trials and looks. What is decided later than the
            probe's end is INCONCLUSIVE.
    """
    codes, at = np.stack([one.codes for one in metrics]), np.stack([one.at for one in metrics])
    last = len(metrics[0].looks) - 1
    lost = np.where(codes == REGRESSION, at, last).min(axis=0)
    end = np.minimum(at.max(axis=0), lost)
    codes = np.where(at <= end, codes, INCONCLUSIVE)
    regression = (codes == REGRESSION).any(axis=0)
    undecided = (codes == INCONCLUSIVE).any(axis=0)
    shifted = (codes == HOST_SHIFT).any(axis=0)
    worst = np.select(
        [regression, undecided, shifted], [REGRESSION, INCONCLUSIVE, HOST_SHIFT], PASS
    )
    return Verdicts(worst.astype(np.int8), end.astype(np.int8), metrics[0].looks)
