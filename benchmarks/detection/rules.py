"""The rules that people use today, each in a few lines, for many trials at once.

Every rule takes accepted values and new ones, shapes (trials, n) in the order measured, says for
each trial whether the new build is worse, and is told whether higher values are better. Each is
read from its own source and written again; where a source leaves a choice, the docstring says which
was made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import mannwhitneyu

from benchmarks.detection.draws import Values

Alarms = NDArray[np.bool_]
ASV_P = 0.002


@dataclass(frozen=True)
class PresentRule:
    """A rule with what it needs: the last `base` accepted values and `new` fresh starts."""

    name: str
    base: int
    new: int
    alarm: Callable[[Values, Values, bool], Alarms]


def loss(base: Values, new: Values, higher: bool) -> Values:
    """How much worse `new` is than `base`, as a fraction of `base`; negative: better."""
    change = new / base - 1
    return -change if higher else change


def fixed_5_percent(base: Values, new: Values, higher: bool) -> Alarms:
    """More than 5 % worse than the mean of the accepted values given (one run, or the last ten)."""
    return loss(base.mean(1), new[:, 0], higher) > 0.05


def pytest_benchmark(base: Values, new: Values, higher: bool) -> Alarms:
    """``--benchmark-compare-fail=mean:5%``: the mean *time* rose by more than 5 %.

    Times are compared with those of one stored run; a throughput is turned into a time. The rounds
    inside a run share its start, so the mean over them carries the noise of one start.
    """
    old_time, new_time = (1 / side if higher else side for side in (base[:, -1], new[:, 0]))
    return new_time / old_time * 100 - 100 > 5


def tensorrt_llm(threshold: float) -> Callable[[Values, Values, bool], Alarms]:
    """TensorRT-LLM's perf sanity check: one run against P95 of a rolling mean over 90 days.

    Source: tests/integration/defs/perf/README_perf_regression_system.md and
    perf_regression_utils.py of NVIDIA/TensorRT-LLM (read at 4fd977c and 22a6053): daily means, a
    trailing mean of three of them, of these P95 where higher is better and P5 where lower is, the
    run judged among them; worse by more than 5 % after, 10 % before the merge. Read here as one
    run a day. Baselines and thresholds set by hand, and the exemption while main itself is below
    the threshold, are left out.
    """

    def alarm(base: Values, new: Values, higher: bool) -> Alarms:
        days = np.concatenate([base, new[:, :1]], axis=1)
        sums = np.cumsum(days, axis=1)
        smooth = sums / np.minimum(np.arange(1, days.shape[1] + 1), 3)
        smooth[:, 3:] = (sums[:, 3:] - sums[:, :-3]) / 3
        best = np.percentile(smooth, 95 if higher else 5, axis=1)
        return loss(best, new[:, 0], higher) > threshold

    return alarm


def welch(base: Values, new: Values, higher: bool) -> Alarms:
    """The 90 % Welch interval of the difference of means lies wholly on the bad side of 0.

    The same as a one-sided test at 5 %.
    """
    if base.shape[1] < 2 or new.shape[1] < 2:
        raise ValueError("Welch's interval needs two values on each side")
    worse = base.mean(1) - new.mean(1) if higher else new.mean(1) - base.mean(1)
    shares = base.var(1, ddof=1) / base.shape[1], new.var(1, ddof=1) / new.shape[1]
    squares = shares[0] + shares[1]
    spread = shares[0] ** 2 / (base.shape[1] - 1) + shares[1] ** 2 / (new.shape[1] - 1)
    with np.errstate(invalid="ignore", divide="ignore"):  # equal values: no spread, no doubt
        dof = np.where(spread > 0, squares**2 / spread, 1.0)
    return worse > stdtrit(dof, 0.95) * np.sqrt(squares)


def steady_10_percent(base: Values, new: Values, higher: bool) -> Alarms:
    """inference-doctor's `compare-runs`: mean 10 % worse, both sides with a CV of 5 % at most.

    Source: docs/measurement-quality.md of dundysm/inference-doctor (read at 544d923).
    """
    steady = (_cv(base) <= 0.05) & (_cv(new) <= 0.05)
    return steady & (loss(base.mean(1), new.mean(1), higher) >= 0.10)


def mann_whitney(base: Values, new: Values, higher: bool) -> Alarms:
    """asv's test: Mann-Whitney, two-sided p < 0.002, the median on the bad side.

    Source: asv/_stats.py, `is_different` (read at 4b9cb9b). asv ranks samples of timings; here a
    sample is a fresh start. Exact p for up to 20 values a side, else normal, as there.
    """
    method: Literal["exact", "asymptotic"]
    method = "exact" if max(base.shape[1], new.shape[1]) <= 20 else "asymptotic"
    p = mannwhitneyu(base, new, axis=1, method=method, use_continuity=False).pvalue
    worse = loss(np.median(base, axis=1), np.median(new, axis=1), higher) > 0
    return (p < ASV_P) & worse


def asv_compare(base: Values, new: Values, higher: bool) -> Alarms:
    """``asv compare`` as it comes: different by that test, and the median worse by a factor 1.1."""
    old_time, new_time = (
        1 / np.median(side, axis=1) if higher else np.median(side, axis=1) for side in (base, new)
    )
    return mann_whitney(base, new, higher) & (new_time > 1.1 * old_time)


def _cv(values: Values) -> Values:
    return values.std(axis=1, ddof=1) / values.mean(axis=1)


# Seven against seven is the least at which a two-sided p < 0.002 can be reached with equal numbers:
# 2 / 3432; with six it is 2 / 924.
RULES = (
    PresentRule("fixed 5 % of one run", 1, 1, fixed_5_percent),
    PresentRule("fixed 5 % of the mean of 10", 10, 1, fixed_5_percent),
    PresentRule("pytest-benchmark mean:5%", 1, 1, pytest_benchmark),
    PresentRule("TensorRT-LLM post-merge 5 %", 90, 1, tensorrt_llm(0.05)),
    PresentRule("TensorRT-LLM pre-merge 10 %", 90, 1, tensorrt_llm(0.10)),
    PresentRule("Welch 90 % interval", 3, 3, welch),
    PresentRule("inference-doctor CV and 10 %", 3, 3, steady_10_percent),
    PresentRule("Mann-Whitney p < 0.002", 7, 7, mann_whitney),
    PresentRule("asv compare (and factor 1.1)", 7, 7, asv_compare),
)
