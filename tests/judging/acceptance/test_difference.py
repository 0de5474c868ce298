"""What moved between two baselines, and over a scenario's history."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SUMS, baseline, entry, with_answers

from perfgate.baselines import Baseline, Entry, Retired, Store, suite_store
from perfgate.baselines.decisions import pin_anchor
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance.difference import HistoryEntry, compare, history


class TestCompare:
    def test_performance_with_its_interval(self) -> None:
        (one,) = compare("c1", entry(100.0, 100.0), entry(90.0, 90.0)).metrics
        assert (one.probe, one.metric) == ("c1", "output_throughput")
        assert one.before == pytest.approx(100)
        assert one.after == pytest.approx(90)
        assert one.change == pytest.approx(-0.1)
        assert one.interval is not None
        assert -0.12 < one.interval[0] < -0.1 < one.interval[1] < -0.08
        assert (one.lost, one.gained) == (None, None)

    def test_accuracy_in_questions_lost_and_gained(self) -> None:
        before = with_answers({"a": True, "b": True, "c": False, "d": True})
        after = with_answers({"a": False, "b": True, "c": True, "d": False})
        (one,) = compare("sums", before, after).metrics
        assert (one.metric, one.before, one.after) == (SUMS, 0.75, 0.5)
        assert one.change == pytest.approx(-0.25)
        assert (one.lost, one.gained) == (2, 1)
        assert one.interval is not None
        assert one.interval[0] < -0.25 < one.interval[1]

    def test_accuracy_without_the_same_questions_has_no_interval(self) -> None:
        before, after = with_answers({"a": True}), with_answers({"b": False})
        (one,) = compare("sums", before, after).metrics
        assert (one.change, one.interval, one.lost) == (-1.0, None, None)

    def test_a_value_without_logarithm_still_has_its_means(self) -> None:
        for before, after, change in ((0.0, 3.0, None), (4.0, 0.0, -1.0)):
            (one,) = compare("c1", entry(before), entry(after)).metrics
            told = (one.before, one.after, one.change, one.interval)
            assert told == (before, after, change, None)

    def test_what_only_one_side_has(self) -> None:
        before = entry(100.0)
        after = entry(20.0, metric="tpot_mean_ms")
        made = compare("c1", before, after).metrics
        assert [(one.metric, one.before, one.after, one.change) for one in made] == [
            ("output_throughput", 100.0, None, None),
            ("tpot_mean_ms", None, 20.0, None),
        ]
        (one,) = compare("c4", None, before).metrics
        assert (one.before, one.after) == (None, 100.0)

    def test_the_facts_that_differ(self) -> None:
        made = compare("c1", entry(1.0), entry(1.0, cpu="Xeon"))
        assert made.facts == ("cpu: measured Xeon, baseline Grace",)


class TestHistory:
    @pytest.fixture
    def store(self, suite_root: Path) -> Store:
        return suite_store()

    def of(self, version: str, entries: dict[str, Entry], **changes: object) -> Baseline:
        build = EngineBuild("llama.cpp", version, f"c{version}")
        return baseline(engine=build, entries=entries, **changes)

    def told(self, steps: tuple[HistoryEntry, ...]) -> list[tuple[object, ...]]:
        def rounded(value: float | None) -> float | None:
            return None if value is None else round(value, 3)

        return [
            (step.baseline.engine.version, value.mean)
            + (rounded(value.since_before), rounded(value.since_anchor))
            for step in steps
            for value in step.values
        ]

    def test_is_oldest_first_with_both_changes(self, store: Store) -> None:
        for version, value in (("1.10", 98.0), ("1.9", 99.0), ("1.8", 100.0)):
            store.save(self.of(version, {"c1": entry(value)}))
        pin_anchor(store.folder / "cpu/small-serve/c1.8.json", by="Ada", reason="x")
        steps = history(store, "cpu", "small-serve")
        assert self.told(steps) == [
            ("1.8", 100.0, None, 0.0),
            ("1.9", 99.0, -0.01, -0.01),
            ("1.10", 98.0, -0.01, -0.02),
        ]
        assert [step.is_anchor for step in steps] == [True, False, False]

    def test_a_retired_one_is_told_but_nothing_is_held_against_it(self, store: Store) -> None:
        retired = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")
        store.save(self.of("1.0", {"c1": entry(100.0)}))
        store.save(self.of("1.1", {"c1": entry(50.0)}, retired=retired))
        store.save(self.of("1.2", {"c1": entry(101.0)}))
        steps = history(store, "cpu", "small-serve")
        assert [one[2] for one in self.told(steps)] == [None, -0.5, 0.01]
        assert steps[1].baseline.retired == retired

    def test_unlike_facts_have_no_change(self, store: Store) -> None:
        store.save(self.of("1.0rc1", {"c1": entry(100.0)}))
        store.save(self.of("1.1rc1", {"c1": entry(50.0, cpu="Xeon")}))
        assert self.told(history(store, "cpu", "small-serve"))[1] == ("1.1rc1", 50.0, None, None)

    def test_tells_the_metrics_asked_for_else_those_with_a_band(self, store: Store) -> None:
        made = entry(100.0)
        run = replace(made.runs[0], metrics={"output_throughput": 100.0, "ttft_p99_ms": 9.0})
        store.save(self.of("1.0", {"c1": replace(made, runs=(run,))}))
        (step,) = history(store, "cpu", "small-serve")
        assert [value.metric for value in step.values] == ["output_throughput"]
        (step,) = history(store, "cpu", "small-serve", ("ttft_p99_ms",))
        assert [value.metric for value in step.values] == ["ttft_p99_ms"]
        assert step.starts == 1
