"""Start effort: distributions of starts, of one metric, of a probe, of a whole campaign."""

import math

import numpy as np
import pytest

from perfgate.core.metrics import lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.forecast.power import Design, odds
from perfgate.judging.forecast.start_effort import (
    AnswersTest,
    DocumentedTest,
    InterleavedTest,
    SpeedTest,
    column_of,
    expected,
    of_probe,
)
from perfgate.judging.rules.accuracy import judge_paired


def a_test(n_base: int = 10, band: float = 4.04, column: int = 0, **changes: object) -> SpeedTest:
    return SpeedTest(Design(n_base, n_base, band, **changes), column)  # type: ignore[arg-type]


def test_the_starts_of_one_metric_are_those_of_its_odds() -> None:
    for slower, loss in ((False, 0.0), (True, 1.0)):
        found, told = of_probe([a_test()], slower=slower), odds(a_test().design, loss)
        assert found.mean_new == pytest.approx(told.new)
        assert found.mean_controls == pytest.approx(told.controls)
        assert found.lost == pytest.approx(told.regression)
        assert (len(found.new), len(found.controls), found.most) == (4, 4, 7)
        assert sum(found.new) == pytest.approx(1)


@pytest.mark.parametrize(("n_base", "starts"), [(10, 1.23), (3, 1.43)])
def test_the_starts_of_three_metrics(n_base: int, starts: float) -> None:
    """Statistics §2 and §4, noise as engines have it."""
    found = of_probe([a_test(n_base, column=column) for column in range(3)], slower=False)
    assert found.mean_new + found.mean_controls == pytest.approx(starts, abs=0.03)
    assert found.lost <= 0.0005


def test_metrics_of_one_family_share_their_noise() -> None:
    names = ("output_throughput", "tpot_mean_ms", "mean_request_latency_ms", "ttft_p99_ms")
    assert [column_of(lookup(name)) for name in names] == [0, 1, 1, 2]
    twice = of_probe([a_test(), a_test()], slower=False)
    assert twice == of_probe([a_test()], slower=False)
    assert of_probe([a_test(), a_test(column=2)], slower=False).mean_new > twice.mean_new


def test_a_campaign_makes_as_many_starts_as_its_slowest_probe() -> None:
    alone = expected({"c1": [a_test()]}, slower=False)
    together = expected({f"c{point}": [a_test()] for point in range(8)}, slower=False)
    assert together.mean > alone.mean + 0.3
    assert together.times("c3") == pytest.approx(alone.mean)
    # Eight probes that each stop after the first start with chance p: all do with p^8.
    assert together.starts.new[0] == pytest.approx(alone.starts.new[0] ** 8)
    assert 1 - together.starts.lost == pytest.approx((1 - alone.starts.lost) ** 8)


def test_nothing_to_judge_takes_one_start() -> None:
    assert expected({"smoke": [], "c1": []}, slower=True).mean == 1.0
    assert expected({}, slower=False).mean == 1.0


def test_a_test_never_asks_for_more_starts_than_it_may() -> None:
    assert a_test(most=2).most == 2
    assert a_test(control="alone", most=3).most == 3
    assert len(of_probe([DocumentedTest(-math.log(0.9), 0.005, 2)], slower=True).new) == 2
    assert DocumentedTest(0.1, 0.005, 5).most == 3
    own = InterleavedTest(0.02, 0.29, 0.03, 6, 6)
    found = of_probe([own], slower=False)
    assert found.new[:3] == (0, 0, 0)  # four at least
    assert len(found.new) == 6


@pytest.mark.parametrize(("questions", "margin"), [(1319, 0.03), (198, 0.08)])
def test_the_evaluations_of_answers_are_those_of_the_gate(questions: int, margin: float) -> None:
    """The gate's own function on answers of which 4 % differ from run to run."""
    (mean,) = [of_probe([AnswersTest(questions, margin)], slower=False).mean_new]
    draw, used = np.random.default_rng(3), []
    varying = round(0.04 / 0.42 * questions)
    chance = np.where(np.arange(varying) % 2, 0.3, 0.7)
    for _ in range(200):
        runs = draw.random((4, varying)) < chance
        base, *new = [
            {f"q{n}": bool(n >= varying or run[n]) for n in range(questions)} for run in runs
        ]
        found = judge_paired("accuracy:a:b:c", [base], new, margin=margin)
        used.append(3 if found.verdict == Verdict.INCONCLUSIVE else found.runs_used)
    assert np.mean(used) == pytest.approx(mean, abs=0.15)


def test_at_worst_all_starts_are_made() -> None:
    found = expected({"c1": [a_test()], "gsm8k": [AnswersTest(1319, 0.02)]}, slower=False)
    worst = found.at_worst()
    assert (worst.mean, worst.times("c1"), worst.times("gsm8k")) == (7, 7, 3)
    assert worst.starts.lost == found.starts.lost
