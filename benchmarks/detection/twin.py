"""Twin: `perfgate.gate.performance.judge_performance` for many trials at once, in numpy.

It exists for speed only. A test and every run of the study compare it with the real function, case
by case; the headline of the study does not use it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.detection.draws import Values
from perfgate.gate.noise import t_quantile
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Verdict

CODES = (Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.REGRESSION, Verdict.IMPROVEMENT)
_INCONCLUSIVE, _PASS, _REGRESSION, _IMPROVEMENT = range(4)


@dataclass(frozen=True)
class Outcomes:
    """What became of each trial: position in `CODES`, and the runs used; shape (trials,)."""

    codes: NDArray[np.int64]
    runs: NDArray[np.int64]


def judge_many(base: Values, new: Values, *, sigma: float, margin: float, rule: Rule) -> Outcomes:
    """Judge trials, on the log scale.

    Args:
        base: baseline, shape (trials, n_base).
        new: new runs in order, shape (trials, at least rule.max_runs).
        sigma: prior noise of one run.
        margin: the band on the log scale.
        rule: error rates and effort.
    """
    kept = winsorised(base, sigma)
    n_base = kept.shape[1]
    dof = rule.prior_dof + n_base - 1
    squares = rule.prior_dof * sigma**2 + ((kept - kept.mean(1, keepdims=True)) ** 2).sum(1)
    spread = np.sqrt(squares / dof)
    centre = kept.mean(1)
    low_t, high_t = t_quantile(1 - rule.alpha, dof), t_quantile(1 - rule.beta, dof)

    def look(first: int, last: int) -> tuple[Values, Values, Values]:
        loss = new[:, first:last].mean(1) - centre
        error = spread * np.sqrt(1 / (last - first) + 1 / n_base)
        return loss, loss - low_t * error, loss + high_t * error

    codes = np.full(len(new), _INCONCLUSIVE)
    runs = np.full(len(new), rule.max_runs)
    undecided = np.ones(len(new), dtype=bool)
    for count in range(1, rule.max_runs + 1):
        _, low, high = look(0, count)
        passed = undecided & (high < margin)
        lost = undecided & ~passed & (low > 0) & (count >= 2)
        if count >= 2:
            lost &= look(1, count)[1] > 0
        codes[passed], codes[lost] = _PASS, _REGRESSION
        runs[passed | lost] = count
        undecided &= ~(passed | lost)
    better = (codes == _PASS) & (runs == 1)
    for position in (0, 1):
        loss, _, high = look(position, position + 1)
        better &= (high < 0) & (-loss >= margin / 2)
    codes[better], runs[better] = _IMPROVEMENT, 2
    return Outcomes(codes, runs)


def winsorised(base: Values, sigma: float) -> Values:
    """Rows of five values or more, pulled in to median ± 3 max(1.4826 MAD, sigma / 2)."""
    if base.shape[1] < 5:
        return base
    centre = np.median(base, axis=1, keepdims=True)
    mad = np.median(np.abs(base - centre), axis=1, keepdims=True)
    reach = 3 * np.maximum(1.4826 * mad, sigma / 2)
    return np.clip(base, centre - reach, centre + reach)
