"""`perfgate ci`: rows that a CI system runs, and the status that its job ends in."""

import json
from typing import Any

import pytest
from command_line import Perfgate
from tables import each

from perfgate.cli.main import main
from perfgate.core.paths import scenario_folders
from perfgate.plan.registered import registered
from perfgate.scenarios.files import load_suite

Capture = pytest.CaptureFixture[str]


def rows(perfgate: Perfgate, *words: str) -> list[dict[str, Any]]:
    out = perfgate.printed(["ci", "matrix", *words])
    assert out.count("\n") == 1
    include: list[dict[str, Any]] = json.loads(out)["include"]
    return include


def test_every_scenario_of_each_gpu_is_in_one_row(perfgate: Perfgate) -> None:
    found = rows(perfgate, "-m", "nightly", "--shards", "3")
    named = [name for row in found for name in row["scenarios"]]
    suite = load_suite(scenario_folders(None), registered())
    asked = [one for one in suite.scenarios if "nightly" in one.markers]
    assert sorted(named) == sorted(one.id for one in asked)
    by_id = {one.id: one for one in suite.scenarios}
    for row in found:
        scenarios = [by_id[name] for name in row["scenarios"]]
        assert {one.hardware.gpu.lower() for one in scenarios} == {row["gpu"]}
        assert row["gpus"] == max(one.hardware.gpus for one in scenarios)
        assert row["expression"] == f"(nightly) and {row['gpu']}"
        assert 0 < 60 * row["hours"] < row["timeout_minutes"] <= 7200
    assert len({row["name"] for row in found}) == len(found)


def test_there_are_no_more_rows_than_scenarios(perfgate: Perfgate) -> None:
    (row,) = rows(perfgate, "-m", "local and not opt_in", "--shards", "5")
    assert row["shard"] == "1/1"
    assert (row["gpu"], row["gpus"]) == ("none", 0)


def test_several_expressions_are_all_asked_for(perfgate: Perfgate) -> None:
    (row,) = rows(perfgate, "-m", "nightly or weekly", "-m", "latency", "--gpu", "B200")
    assert row["expression"] == "((nightly or weekly) and (latency)) and b200"
    assert row["scenarios"] == ["b200-r1-fp4-min-latency"]


def test_a_template_is_in_it_only_if_it_is_named(perfgate: Perfgate) -> None:
    named = [name for row in rows(perfgate) for name in row["scenarios"]]
    assert not any("explore" in name for name in named)
    (row,) = rows(perfgate, "-m", "explore", "--gpu", "H200")
    assert row["scenarios"] == ["h200-r1-fp8-explore"]


def test_more_rows_than_github_takes_are_refused(
    perfgate: Perfgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfgate.campaign.shards._MOST_ROWS", 3)
    assert "more rows than GitHub takes" in perfgate.refused("ci matrix --shards 3")


@each(
    "event, status, word, ends_in",
    [
        ("nightly", "0", "pass", 0),
        ("nightly", "10", "warn", 0),
        ("release", "10", "block", 10),
        ("rehearsal", "13", "pass", 0),
        ("rehearsal", "0", "block", 11),
        ("release", "77", "block", 77),
    ],
)
def test_a_decision_is_one_line_and_a_status(
    event: str, status: str, word: str, ends_in: int, perfgate: Perfgate
) -> None:
    said = perfgate.printed(f"ci decision --event {event} {status}", ends_in)
    assert said.count("\n") == 1
    assert said.startswith(f"{word}: {event}, status {status}: ")


def test_a_decision_as_json(perfgate: Perfgate) -> None:
    found = perfgate.plain("ci decision --event release 10", 10)
    assert found.pop("sentence")
    assert found == {"event": "release", "status": 10, "decision": "block", "exit_status": 10}


@each("status", ["", "-1", "256", "0x0", "٠", "1_0", "0" * 5000])
def test_a_job_that_gave_no_status_cannot_pass(status: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ci", "decision", "--event", "nightly", status])
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""
