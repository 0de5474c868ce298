"""A probe's verdict: the worst of its gating metrics, against a comparable baseline only."""

from dataclasses import replace

import building
import pytest

from perfgate.baselines import BaselineRun, Entry
from perfgate.errors import InputError
from perfgate.gate.performance import Rule
from perfgate.gate.verdict import Verdict
from perfgate.judging import judge
from perfgate.measurement import Measurement
from perfgate.probe import Probe, load_probes
from perfgate.scenarios.scenario import GatePolicy

FACTS = {"content": "a", "cpu": "b"}
SCENARIO = replace(
    building.SCENARIO, gate=GatePolicy(("output_throughput", "ttft_median_ms"), noise="prior")
)
PROBE = load_probes(SCENARIO)[0]


def entry(values: list[float], **other: list[float]) -> Entry:
    columns = {"output_throughput": values, **other}
    return Entry(
        FACTS,
        tuple(
            BaselineRun("r", "2026-01-01T00:00:00+00:00", {n: c[i] for n, c in columns.items()})
            for i in range(len(values))
        ),
    )


BASELINE = entry([100.0, 101, 99, 100, 100], ttft_median_ms=[50.0, 51, 49, 50, 50])


def new(*pairs: tuple[float, float]) -> list[Measurement]:
    return [Measurement({"output_throughput": a, "ttft_median_ms": b}) for a, b in pairs]


def test_without_a_baseline_nothing_is_claimed() -> None:
    judged = judge(PROBE, None, new((100, 50)), FACTS, Rule())
    assert (judged.verdict, judged.needs_more_runs) == (Verdict.NO_BASELINE, False)


def test_other_facts_are_not_comparable_and_named() -> None:
    judged = judge(PROBE, BASELINE, new((10, 500)), {**FACTS, "cpu": "c"}, Rule())
    assert judged.verdict == Verdict.NOT_COMPARABLE
    assert judged.reason == "cpu: measured c, baseline b"


def test_the_worst_metric_decides() -> None:
    judged = judge(PROBE, BASELINE, new((100, 100), (100, 100)), FACTS, Rule())
    assert judged.verdict == Verdict.REGRESSION
    assert [one.verdict for one in judged.judgements] == [Verdict.PASS, Verdict.REGRESSION]


def test_a_proved_regression_asks_for_no_more_starts_for_other_metrics() -> None:
    judged = judge(PROBE, BASELINE, new((50, 58), (50, 57)), FACTS, Rule())
    assert judged.verdict == Verdict.REGRESSION
    assert not judged.needs_more_runs


def test_one_start_proves_no_regression_and_asks_for_another() -> None:
    judged = judge(PROBE, BASELINE, new((50, 50)), FACTS, Rule())
    assert (judged.verdict, judged.needs_more_runs) == (Verdict.INCONCLUSIVE, True)


def test_a_metric_that_the_baseline_lacks_is_no_pass() -> None:
    judged = judge(PROBE, entry([100.0] * 5), new((100, 50)), FACTS, Rule())
    assert judged.verdict == Verdict.NO_BASELINE


def test_a_probe_without_a_gating_metric_is_refused() -> None:
    bare = Probe(
        replace(SCENARIO, gate=GatePolicy(("accuracy:gsm8k:exact_match:strict-match",))),
        PROBE.what,
    )
    with pytest.raises(InputError, match="nothing to judge"):
        judge(bare, BASELINE, new((100, 50)), FACTS, Rule())


def test_broken_output_is_named_beside_the_lost_points() -> None:
    task = "accuracy:sums:exact_match"
    strict, flexible = f"{task}:strict-match", f"{task}:flexible-extract"
    scenario = replace(SCENARIO, gate=GatePolicy((strict,)))
    accuracy = replace(building.SCENARIO.accuracy[0], task="sums")
    right = {strict: {f"q{n}": True for n in range(200)}}
    wrong = {strict: {f"q{n}": n < 20 for n in range(200)}}
    reference = Entry(
        FACTS,
        (BaselineRun("r", "2026-01-01T00:00:00+00:00", {strict: 1.0, flexible: 1.0}, right),),
    )
    measured = [Measurement({strict: 0.1, flexible: 0.1}, {}, wrong)]
    judged = judge(Probe(scenario, accuracy), reference, measured, FACTS, Rule())
    assert judged.verdict == Verdict.REGRESSION
    assert "BROKEN_OUTPUT" in judged.judgements[0].notes
