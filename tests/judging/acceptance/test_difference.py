"""What moved between two baselines, and over a scenario's history."""

from dataclasses import replace

import pytest
from building import SUMS, baseline, entry, with_answers
from tables import each

from perfgate.baselines import Entry, Retired, suite_store
from perfgate.baselines.decisions import pin_anchor
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance import HistoryEntry, compare, history

SPEED = "output_throughput"


def test_a_speed_with_its_interval() -> None:
    (one,) = compare("c1", entry(100.0, 100.0), entry(90.0, 90.0)).metrics
    assert (one.probe, one.metric, one.change) == ("c1", SPEED, pytest.approx(-0.1))
    assert (one.before, one.after) == (pytest.approx(100), pytest.approx(90))
    assert one.interval is not None
    assert -0.12 < one.interval[0] < -0.1 < one.interval[1] < -0.08
    assert (one.lost, one.gained) == (None, None)


def test_an_accuracy_in_questions_lost_and_gained() -> None:
    before = with_answers({"a": True, "b": True, "c": False, "d": True})
    after = with_answers({"a": False, "b": True, "c": True, "d": False})
    (one,) = compare("sums", before, after).metrics
    assert (one.metric, one.before, one.after) == (SUMS, 0.75, 0.5)
    assert (one.change, one.lost, one.gained) == (pytest.approx(-0.25), 2, 1)
    assert one.interval is not None
    assert one.interval[0] < -0.25 < one.interval[1]


TPOT = entry(20.0, metric="tpot_mean_ms")


@each(
    "before, after, expected",
    [
        # Other questions, and values without a logarithm: means, and no interval.
        (with_answers({"a": True}), with_answers({"b": False}), [(SUMS, 1.0, 0.0, -1.0)]),
        (entry(0.0), entry(3.0), [(SPEED, 0.0, 3.0, None)]),
        (entry(4.0), entry(0.0), [(SPEED, 4.0, 0.0, -1.0)]),
        # What only one side has.
        (entry(1.0), TPOT, [(SPEED, 1.0, None, None), ("tpot_mean_ms", None, 20.0, None)]),
        (None, entry(100.0), [(SPEED, None, 100.0, None)]),
    ],
)
def test_without_an_interval(before: Entry | None, after: Entry, expected: list[object]) -> None:
    found = compare("c4", before, after).metrics
    assert [(one.metric, one.before, one.after, one.change) for one in found] == expected
    assert all(one.interval is None and one.lost is None for one in found)


def test_the_facts_that_differ() -> None:
    made = compare("c1", entry(1.0), entry(1.0, cpu="Xeon"))
    assert made.facts == ("cpu: measured Xeon, baseline Grace",)


def save(version: str, made: Entry, **changes: object) -> None:
    build = EngineBuild("llama.cpp", version, f"c{version}")
    suite_store().save(baseline(engine=build, entries={"c1": made}, **changes))


def steps(*metrics: str) -> tuple[HistoryEntry, ...]:
    return history(suite_store(), "cpu", "small-serve", metrics or None)


def told() -> list[tuple[object, ...]]:
    return [
        (step.baseline.engine.version, value.mean)
        + tuple(x if x is None else round(x, 3) for x in (value.since_before, value.since_anchor))
        for step in steps()
        for value in step.values
    ]


@pytest.mark.usefixtures("suite_root")
class TestHistory:
    def test_is_oldest_first_with_both_changes(self) -> None:
        for version, value in (("1.10", 98.0), ("1.9", 99.0), ("1.8", 100.0)):
            save(version, entry(value))
        pin_anchor(suite_store().folder / "cpu/small-serve/c1.8.json", by="Ada", reason="x")
        assert told() == [
            ("1.8", 100.0, None, 0.0),
            ("1.9", 99.0, -0.01, -0.01),
            ("1.10", 98.0, -0.01, -0.02),
        ]
        assert [step.is_anchor for step in steps()] == [True, False, False]

    def test_nothing_is_compared_with_a_retired_one_or_with_unlike_facts(self) -> None:
        retired = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")
        save("1.0rc1", entry(100.0))
        save("1.1rc1", entry(50.0), retired=retired)
        save("1.2rc1", entry(101.0))
        save("1.3rc1", entry(50.0, cpu="Xeon"))
        assert [one[2:] for one in told()] == [
            (None, None),
            (-0.5, None),
            (0.01, None),
            (None, None),
        ]
        assert steps()[1].baseline.retired == retired

    def test_tells_the_metrics_asked_for_else_those_with_a_band(self) -> None:
        made = entry(100.0)
        run = replace(made.runs[0], metrics={SPEED: 100.0, "ttft_p99_ms": 9.0})
        save("1.0", replace(made, runs=(run,)))
        for metrics, expected in (((), [SPEED]), (("ttft_p99_ms",), ["ttft_p99_ms"])):
            (step,) = steps(*metrics)
            assert ([value.metric for value in step.values], step.starts) == (expected, 1)
