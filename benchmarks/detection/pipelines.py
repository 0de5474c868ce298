"""Many tests at once: false alarms of a whole pipeline, and Holm over a scenario's metrics."""

from collections import Counter
from dataclasses import replace

import numpy as np

from benchmarks.detection.draws import noise, throughputs
from benchmarks.detection.error_rates import (
    ALPHAS,
    MOST_RUNS,
    SIGMA,
    Cell,
    by_twin,
    row,
    standard_error,
)
from perfgate.gate.multiplicity import holm
from perfgate.gate.performance import judge_performance
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Judgement, Verdict, verdict_of

TESTS = 120
PRIMARY = ("output_throughput", "total_token_throughput", "request_throughput")
# Three throughputs of one server nearly repeat each other; independent metrics are the other end.
SHARED = {"independent": 0.0, "correlated 0.9": 0.9}
_BASELINES = ((5, 4.0), (10, 3.0), (10, 4.0), (30, 3.0), (30, 4.0))


def of_many_tests(trials: int) -> list[dict[str, object]]:
    """The chance of at least one false alarm, and of any test undecided, in 120 gate tests."""
    rows = []
    for kind in ("gauss", "outliers"):
        for n_base, band in _BASELINES:
            for alpha in ALPHAS:
                cell = Cell(n_base=n_base, band=band, noise=kind, alpha=alpha)
                rates = row(cell, by_twin(cell, trials))
                alarm, passed = float(str(rates["regression"])), float(str(rates["pass"]))
                rows.append(
                    {
                        **rates,
                        "any_alarm": 1 - (1 - alarm) ** TESTS,
                        # d/df of 1 - (1 - f)^n, times the standard error of f
                        "any_alarm_error": TESTS
                        * (1 - alarm) ** (TESTS - 1)
                        * standard_error(alarm, trials),
                        "all_pass": passed**TESTS,
                    }
                )
    return rows


def of_holm(trials: int) -> list[dict[str, object]]:
    """One to three primary metrics of a scenario, judged plainly and with Holm's step-down.

    n_base 5 and a band of 3 sigma, where false alarms are many enough to be counted; the loss is
    in the first metric only.
    """
    rows = []
    for share, correlation in SHARED.items():
        # One metric alone shares its noise with none.
        for metrics in range(2 if correlation else 1, len(PRIMARY) + 1):
            for loss in (0.0, 1.0):
                cell = Cell(n_base=5, band=3, loss=loss)
                rows.append(
                    {
                        "metrics": metrics,
                        "shared": share,
                        "loss": loss,
                        "trials": trials,
                        **_judged(cell, PRIMARY[:metrics], correlation, trials),
                    }
                )
    return rows


def _judged(
    cell: Cell, metrics: tuple[str, ...], correlation: float, trials: int
) -> dict[str, float]:
    runs = cell.n_base + MOST_RUNS
    common = noise("holm common", "gauss", trials, runs)
    own = {
        metric: throughputs(
            SIGMA
            * (
                np.sqrt(correlation) * common
                + np.sqrt(1 - correlation) * noise(f"holm {metric}", "gauss", trials, runs)
            )
        )
        for metric in metrics
    }
    own[metrics[0]][:, cell.n_base :] *= np.exp(-cell.loss * cell.margin)
    lists = {metric: values.tolist() for metric, values in own.items()}
    plain: Counter[Verdict] = Counter()
    stepped: Counter[Verdict] = Counter()
    for trial in range(trials):

        def judge(metric: str, alpha: float, trial: int = trial) -> Judgement:
            values = lists[metric][trial]
            return judge_performance(
                metric,
                values[: cell.n_base],
                values[cell.n_base :],
                band=-float(np.expm1(-cell.margin)),
                sigma=SIGMA,
                rule=replace(cell.rule, alpha=alpha),
            )

        plain[verdict_of(judge(metric, Rule().alpha) for metric in metrics)] += 1
        stepped[verdict_of(holm(metrics, judge, Rule().alpha).values())] += 1
    return {
        "plain": plain[Verdict.REGRESSION] / trials,
        "holm": stepped[Verdict.REGRESSION] / trials,
        "plain_undecided": plain[Verdict.INCONCLUSIVE] / trials,
        "holm_undecided": stepped[Verdict.INCONCLUSIVE] / trials,
    }
