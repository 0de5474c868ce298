"""`perfgate ci`: rows that a CI system runs, and the status that its job ends in."""

import json
from typing import Any

import pytest
from command_line import Perfgate

from perfgate.core.files.paths import scenario_folders
from perfgate.plan.toolchain import registered
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


def test_a_template_is_in_it_only_if_it_is_named(perfgate: Perfgate) -> None:
    named = [name for row in rows(perfgate) for name in row["scenarios"]]
    assert not any("explore" in name for name in named)


def test_more_rows_than_github_takes_are_refused(
    perfgate: Perfgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfgate.campaign.shards._MOST_ROWS", 3)
    assert "more rows than GitHub takes" in perfgate.refused("ci matrix --shards 3")
