"""Histories: stored baselines, anchor and earlier runs beside this run; what is left out."""

import os
from dataclasses import replace
from pathlib import Path

from building import baseline, entry
from plain_records import record

from perfgate.baselines import Store, suite_store
from perfgate.core.measurement import MeasuredBuild, MeasuredMetric
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.reports.histories import gathered_histories
from perfgate.reports.run_report import SCHEMA_VERSION, RunReport, ScenarioFacts, TestResult
from perfgate.runs.record import Record
from perfgate.runs.run_folder import RunFolder


def report(synthetic: bool = False) -> RunReport:
    result = TestResult(
        *("test[small-serve-c1]", "small-serve-c1", "small-serve", "c1", "now"),
        Verdict.NO_BASELINE,
        measured=(MeasuredMetric("output_throughput", "tokens/s", 7.0, (7.0,)),),
        build=MeasuredBuild("llama.cpp", "1.9.0", "fff999"),
        synthetic=synthetic,
    )
    scenario = ScenarioFacts("small-serve", hardware="cpu")
    return RunReport(SCHEMA_VERSION, (), 0, "", synthetic, (result,), (scenario,), ())


def stored(store: Store) -> None:
    for version, commit, value in (("1.0.0", "aaa", 5.0), ("1.1.0.dev1", "bbb", 6.0)):
        build = EngineBuild("llama.cpp", version, commit)
        store.save(baseline(engine=build, entries={"c1": entry(value, value)}))


def run_folder(
    folder: Path, *more: Record, synthetic: bool = False, reason: str = "", **facts: object
) -> None:
    began = {"started": "2026-11-20T08:00:00+00:00"}
    run = RunFolder.create(folder, {**began, "synthetic": synthetic, **facts})
    measured = {"metric": "output_throughput", "unit": "tokens/s", "value": 6.5, "values": [6.5]}
    build = {"name": "llama.cpp", "version": "1.5.0", "commit": "ccc"}
    told = {"synthetic": synthetic, "reason": reason}
    for one in (record("verdict", build=build, measured=[measured], **told), *more):
        run.record(one)
    run.close()


def test_baselines_anchor_runs_and_this_run(suite_root: Path, tmp_path: Path) -> None:
    stored(suite_store())
    left_half_done = record("set_aside", scenario="small-serve", folder="broken")
    run_folder(tmp_path / "runs" / "earlier", left_half_done)
    begun_again = record("resumed", repeats=["small-serve"])
    run_folder(tmp_path / "runs" / "not-measured-yet", begun_again)
    ((history,), notes) = gathered_histories(report(), None, tmp_path / "runs")
    assert notes == ()
    assert [(one.commit, one.kind, round(one.value, 9)) for one in history.points] == [
        ("aaa", "anchor", 5.0),
        ("bbb", "baseline", 6.0),
        ("ccc", "run", 6.5),
        ("fff999", "this run", 7.0),
    ]
    assert (history.metric, history.unit) == ("output_throughput", "tokens/s")


def test_what_is_damaged_foreign_or_of_the_other_kind_is_left_out(
    suite_root: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    run_folder(runs / "rehearsed", synthetic=True)
    run_folder(runs / "two-builds", ab=["a", "b"])
    run_folder(runs / "slowed", injected=["x=1"])
    run_folder(runs / "good", reason=os.fsdecode(b"no text: \xff"))
    run_folder(runs / "damaged")
    (runs / "damaged" / "records.jsonl").write_text("{\n{\n")
    (runs / "foreign").mkdir()
    (runs / "link").symlink_to(runs / "good")
    ((history,), notes) = gathered_histories(report(), None, runs)
    assert [one.kind for one in history.points] == ["run", "this run"]
    left_out = [one.partition(":")[0] for one in notes]
    assert left_out == ["two-builds", "slowed", "rehearsed", "foreign", "damaged"]


def test_synthetic_and_measured_are_never_mixed(suite_root: Path, tmp_path: Path) -> None:
    stored(suite_store())
    run_folder(tmp_path / "runs" / "real")
    histories, notes = gathered_histories(report(synthetic=True), suite_store(), tmp_path / "runs")
    assert histories == ()
    assert notes == ("real: left out of the history: measured",)


def test_points_measured_otherwise_are_not_joined(suite_root: Path) -> None:
    store = suite_store()
    stored(store)
    other = replace(entry(9.0), fingerprint={"content": "another", "cpu": "Grace"})
    build = EngineBuild("llama.cpp", "1.2.0", "ddd")
    store.save(baseline(engine=build, entries={"c1": other}))
    ((history,), _) = gathered_histories(report())
    segments = {one.commit: one.segment for one in history.points}
    assert segments["aaa"] == segments["bbb"] != segments["ddd"]


def test_a_broken_baseline_does_not_fail_the_report(suite_root: Path) -> None:
    stored(suite_store())
    suite_store().list()[0].write_text("{")
    histories, notes = gathered_histories(report())
    assert histories == ()
    assert len(notes) == 1
    assert "small-serve" in notes[0]
