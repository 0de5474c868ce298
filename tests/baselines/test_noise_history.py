"""The noise history: what records show is kept and read again, and what nobody should trust not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from life import METRIC, begun, judge
from life import measure as record_measurement
from refusals import refused
from tables import each

from perfgate.baselines import noise_history
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, keep_noise, read, read_all, save
from perfgate.baselines.stored_json import with_hash
from perfgate.runs.run_folder import RunFolder

SERIES = NoiseSeries(
    scenario="small-serve",
    probe="c1",
    content=noise_history.content_of({"cpu": "Grace"}),
    build="abc123",
    values={METRIC: (100.0, 101.5), "ttft_mean_ms": (5.0, 5.25)},
    machine={"cpu": "Grace", "cores": "72"},
    node="n7",
)
RUN = NoiseRun("8xH200", "run-1", "2026-11-20T08:00:00+00:00", (SERIES,))
SCORE = "accuracy:sums:exact_match:strict"
CONTROL = {"role": "baseline_control", "engine": {"name": "x", "version": "1.2", "commit": "old"}}


@pytest.fixture(autouse=True)
def checkout(suite_root: Path) -> Path:
    return suite_root


@pytest.fixture
def run(checkout: Path) -> Iterator[RunFolder]:
    folder = begun(checkout / "runs" / "one")
    yield folder
    folder.close()


def measure(run: RunFolder, start: int, value: float, **changes: Any) -> None:
    told = {
        "hardware": "8xH200",
        "started": f"2026-11-20T08:{start:02}:00+00:00",
        "engine": {"name": "llama.cpp", "version": "1.3.0", "commit": "new"},
        "fingerprint": {"cpu": "Grace", "cores": "72", "driver": "570.1"},
        "metrics": {METRIC: value, SCORE: 0.5},
        "facts": {"slurm": {"job": "1", "nodes": ["n7"], "own_job": True}},
    }
    record_measurement(run, start=start, **{**told, **changes})


def series(run: RunFolder) -> list[NoiseSeries]:
    return [one for each in noise_history.observe(run) for one in each.series]


@pytest.mark.parametrize("verdict", ["PASS", "REGRESSION", "ERROR"])
def test_undisturbed_starts_of_one_build_count_in_order_whatever_the_verdict(run, verdict) -> None:
    for start, value in ((1, 100.0), (2, 101.0), (5, 99.0)):
        measure(run, start, value)
    marks = ({"disturbed": ["hot"]}, {"injected": ["x"]}, {"synthetic": True})
    for start, mark in enumerate(marks, start=6):
        measure(run, start, 50.0, **mark)
    measure(run, 4, 120.0, **CONTROL)
    measure(run, 3, 121.0, **CONTROL)
    judge(run, verdict=verdict)
    new, control = series(run)
    assert (new.build, new.values) == ("new", {METRIC: (100.0, 101.0, 99.0)})
    assert (control.build, control.values) == ("old", {METRIC: (121.0, 120.0)})
    assert (new.machine, new.node) == ({"cpu": "Grace", "cores": "72"}, "n7")


def test_starts_on_two_nodes_or_of_two_contents_are_two_series(run) -> None:
    measure(run, 1, 100.0)
    measure(run, 2, 90.0, facts={"mpirun": {"hosts": ["n9", "n8"], "version": "4"}})
    measure(run, 3, 80.0, fingerprint={"cpu": "Grace", "driver": "580"})
    # A node is known only where something shows it.
    for start, facts in ((4, {}), (5, {"slurm": "n7", "mpirun": {"hosts": None}})):
        measure(run, start, 70.0, facts=facts)
    assert [one.node for one in series(run)] == ["n7", "n8,n9", "n7", ""]


def test_what_the_runs_showed_is_kept_beside_the_baselines(run) -> None:
    measure(run, 1, 100.0)
    measure(run, 1, 3.0, hardware="cpu", machine_bound=True)
    kept = keep_noise([run.path])
    assert [len(read_all("8xH200", own=own)[0]) for own in (False, True)] == [1, 0]
    assert [len(read_all("cpu", own=own)[0]) for own in (False, True)] == [0, 1]
    assert ["home" in path.parts for path in kept] == [False, True]


@each("facts", [{"synthetic": True}, {"synthetic": None}, {"arguments": ["--rehearse"]}])
def test_nothing_of_a_rehearsal_is_kept(facts, tmp_path) -> None:
    folder = begun(tmp_path / "two", **facts)
    measure(folder, 1, 100.0)
    assert keep_noise([folder.path]) == []
    folder.close()


def test_what_is_kept_is_read_again(checkout) -> None:
    path = save(RUN, own=False)
    assert path == checkout / "baselines" / "noise" / "8xH200" / "history" / "run-1.json"
    assert read(path) == RUN
    changed = replace(RUN, at="2026-11-21T08:00:00+00:00")
    save(changed, own=False)  # the same run counts once
    assert read_all("8xH200", own=False) == ([changed], [])


def test_scores_secrets_and_what_is_too_long_are_not_kept() -> None:
    secret = "ghp_" + "a1B2" * 9  # pragma: allowlist secret
    values = {METRIC: tuple(float(one) for one in range(1, 200)), SCORE: (0.5, 0.5)}
    path = save(
        replace(RUN, series=(replace(SERIES, values=values, node=f"x-{secret}"),)), own=False
    )
    (one,) = read(path).series
    lengths = {metric: len(kept) for metric, kept in one.values.items()}
    assert lengths == {METRIC: noise_history.MOST_STARTS}
    assert secret not in path.read_text()


@each("name", ["../up", "a/b", ".hidden", "", "x" * 300, "a\nb"])
def test_a_run_whose_name_is_no_file_name_is_refused(name) -> None:
    refused(save, replace(RUN, run=name), own=False, match="cannot be the name of a file")


def test_the_newest_files_are_read_and_no_drafts() -> None:
    folder = noise_history.history_folder("8xH200", own=False)
    folder.mkdir(parents=True)
    names = [f"run-{number:04}.json" for number in range(noise_history.MOST_FILES + 5)]
    for name in (*names, ".run-9999.json.abc", ".run-9999.json"):
        (folder / name).write_text("{")
    found, unread = read_all("8xH200", own=False)
    assert (found, len(unread)) == ([], noise_history.MOST_FILES)
    assert unread[0].startswith("run-0005.json: ")


@each(
    "changes, of_series, field",
    [
        ({"schema_version": 2}, {}, "schema_version"),
        ({"hardware": "8xB200"}, {}, "hardware"),
        ({"run": "run-2"}, {}, "run"),
        ({"synthetic": True}, {}, "synthetic"),
        ({"series": [0] * 2001}, {}, "series"),
        ({}, {"node": 0}, "series[0].node"),
        ({}, {"offsets": {METRIC: 0.1}}, "series[0].offsets"),
        *(({}, {"values": {METRIC: bad}}, None) for bad in ([-1.0], ["1"], [1.0] * 65)),
        ({}, {"values": {METRIC: [1, 2]}}, "hash"),
    ],
)
def test_a_damaged_file_is_refused_and_left_out_of_the_history(changes, of_series, field) -> None:
    path = save(RUN, own=False)
    plain = json.loads(path.read_text())
    plain["series"][0].update(of_series)
    plain.update(changes)
    path.write_text(json.dumps(plain if field == "hash" else with_hash(plain)))
    error = refused(read, path)
    assert (error.file, field or error.field) == (path, error.field)
    assert read_all("8xH200", own=False) == ([], [f"run-1.json: {error.problem}"])
    for text in ("", "{", "[]", "null", '{"schema_version": 1}', "[" * 5000):
        path.write_text(text)
        assert read_all("8xH200", own=False)[0] == []
