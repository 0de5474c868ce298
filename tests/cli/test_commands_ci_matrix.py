"""`perfgate ci matrix`: rows that a CI system runs; the same division as `pytest --shard`."""

import json
from typing import Any

import pytest
from command_line import Perfgate
from tables import each

from perfgate.core.paths import scenario_folders
from perfgate.plan.registered import registered
from perfgate.scenarios.files import load_suite


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


@each(
    "words",
    [
        ("-m", "b200 and h200"),
        ("-m", "latency", "--gpu", "GB200"),
        ("-m", "nosuchmarker"),
        ("-m", "b200 and"),
        ("--shards", "257"),
    ],
)
def test_no_job_is_an_error_and_prints_no_matrix(
    words: tuple[str, ...], perfgate: Perfgate
) -> None:
    assert perfgate.refused(["ci", "matrix", *words]).startswith("perfgate: ")


def test_more_rows_than_github_takes_are_refused(
    perfgate: Perfgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfgate.campaign.matrix._MOST_ROWS", 3)
    assert "more rows than GitHub takes" in perfgate.refused("ci matrix --shards 3")
