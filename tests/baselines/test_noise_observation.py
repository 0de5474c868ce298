"""Observing: what the records of a run show of the noise, and what they must not show."""

from pathlib import Path
from typing import Any

import pytest
from building import judgement, outcome
from plain_records import fields_of, record
from test_recording import measure as record_measurement
from test_recording import run

from perfgate.baselines.noise_history import NoiseSeries, keep_noise, observe, read_all
from perfgate.core.verdict import Verdict
from perfgate.runs.run_folder import RunFolder

__all__ = ["run"]  # the fixture
METRIC = "output_throughput"


def measure(run: RunFolder, start: int, value: float, **changes: Any) -> None:
    told: dict[str, Any] = {
        "hardware": "8xH200",
        "started": f"2026-11-20T08:{start:02}:00+00:00",
        "engine": {"name": "llama.cpp", "version": "1.3.0", "commit": "new"},
        "fingerprint": {"cpu": "Grace", "cores": "72", "driver": "570.1"},
        "metrics": {METRIC: value, "accuracy:sums:exact_match:strict": 0.5},
        "facts": {"slurm": {"job": "1", "nodes": ["n7"], "own_job": True}},
    }
    record_measurement(run, start=start, **{**told, **changes})


CONTROL = {"role": "baseline_control", "engine": {"name": "x", "version": "1.2", "commit": "old"}}


def end(run: RunFolder, verdict: Verdict, baseline: float = 100.0) -> None:
    judged = judgement(metric=METRIC, verdict=verdict, baseline=baseline)
    told = fields_of(outcome(verdict=verdict, judgements=(judged,)))
    run.record(record("verdict", {"test": "c4", **told, "scenario": "small-serve", "probe": "c4"}))


def series(run: RunFolder) -> list[NoiseSeries]:
    return [one for each in observe(run) for one in each.series]


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.REGRESSION, Verdict.ERROR])
def test_starts_of_one_build_count_in_order_whatever_the_verdict(
    run: RunFolder, verdict: Verdict
) -> None:
    for start, value in ((1, 100.0), (2, 101.0), (5, 99.0)):
        measure(run, start, value)
    measure(run, 4, 120.0, **CONTROL)
    measure(run, 3, 121.0, **CONTROL)
    end(run, verdict)
    new, control = series(run)
    assert (new.build, new.values) == ("new", {METRIC: (100.0, 101.0, 99.0)})
    assert (control.build, control.values) == ("old", {METRIC: (121.0, 120.0)})
    assert new.machine == {"cpu": "Grace", "cores": "72"}
    assert new.node == "n7"


@pytest.mark.parametrize(
    "changes", [{"disturbed": ["hot"]}, {"injected": ["x=1"]}, {"synthetic": True}]
)
def test_what_was_disturbed_injected_or_made_up_does_not_count(
    run: RunFolder, changes: dict[str, Any]
) -> None:
    measure(run, 1, 100.0)
    measure(run, 2, 50.0, **changes)
    (one,) = series(run)
    assert one.values[METRIC] == (100.0,)


def test_starts_on_two_nodes_or_of_two_contents_are_two_series(run: RunFolder) -> None:
    measure(run, 1, 100.0)
    measure(run, 2, 90.0, facts={"mpirun": {"hosts": ["n9", "n8"], "version": "4"}})
    measure(run, 3, 80.0, fingerprint={"cpu": "Grace", "driver": "580"})
    assert [one.node for one in series(run)] == ["n7", "n8,n9", "n7"]


@pytest.mark.parametrize("facts", [{}, {"slurm": "n7", "mpirun": {"hosts": None}}])
def test_a_node_is_known_only_where_something_shows_it(
    run: RunFolder, facts: dict[str, Any]
) -> None:
    measure(run, 1, 100.0, facts=facts)
    assert [one.node for one in series(run)] == [""]


def test_what_the_runs_showed_is_kept_beside_the_baselines(run: RunFolder) -> None:
    measure(run, 1, 100.0)
    measure(run, 1, 3.0, hardware="cpu", machine_bound=True)
    first, second = keep_noise([run.path])
    assert [len(read_all("8xH200", own=own)[0]) for own in (False, True)] == [1, 0]
    assert [len(read_all("cpu", own=own)[0]) for own in (False, True)] == [0, 1]
    assert "home" in second.parts
    assert "home" not in first.parts


@pytest.mark.parametrize(
    "facts", [{"synthetic": True}, {}, {"synthetic": False, "arguments": ["--rehearse"]}]
)
def test_nothing_of_a_rehearsal_is_kept(suite_root: Path, facts: dict[str, Any]) -> None:
    folder = RunFolder.create(suite_root / "runs" / "two", facts)
    measure(folder, 1, 100.0)
    assert keep_noise([folder.path]) == []
    folder.close()
