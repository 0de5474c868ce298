"""Shards on the road: a printed matrix, a rehearsal of each row, and the report of all of them."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from sessions import ONLY_NEEDED_PLUGINS, inherited
from test_rehearsal import ROOT, Rehearsed, rehearse
from test_road import PLUGINS

from perfgate.cli.main import main

pytestmark = pytest.mark.slow

# Three scenarios whose documents have numbers, so that the gate judges.
EXPRESSION = "offline and (latency or throughput) and not chunked_context and not explore"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The matrix of two shards, as printed."""
    file = tmp_path_factory.mktemp("matrix") / "matrix.json"
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr("builtins.print", lambda *words, **_: said.append(" ".join(words)))
        assert main(["matrix", "-m", EXPRESSION, "--gpu", "B200", "--shards", "2"]) == 0
    (line,) = [one for one in said if one.startswith("{")]
    file.write_text(line)
    return file, json.loads(line)["include"]


@pytest.fixture(scope="module")
def shards(
    rows: tuple[Path, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> list[Rehearsed]:
    """A rehearsal of each row, the second one by workers."""
    done = []
    for number, row in enumerate(rows[1]):
        place = tmp_path_factory.mktemp(row["name"])
        more = ("-n", "2") if number else ("--html",)
        words = ("-m", row["expression"], "--shard", row["shard"], *more)
        done.append(rehearse(place, *words, traced=False))
    return done


def test_each_row_measures_its_scenarios_and_no_others(
    rows: tuple[Path, list[dict[str, Any]]], shards: list[Rehearsed]
) -> None:
    selections = set()
    for row, done in zip(rows[1], shards, strict=True):
        assert done.status == 13, done.output
        (shard,) = done.records("shard")
        assert f"{shard['number']}/{shard['of']}" == row["shard"]
        assert shard["scenarios"][shard["number"] - 1] == row["scenarios"]
        assert shard["expression"] == row["expression"]
        selections.add(shard["selection"])
        assert {one["scenario"] for one in done.records("measurement")} == set(row["scenarios"])
        (end,) = done.records("ended")
        assert (end["status"], end["failed"], end["bugs"]) == (13, [], [])
    assert len(selections) == 1
    assert [(done.folder / "report.html").is_file() for done in shards] == [True, False]


def test_the_gate_judges_in_shards_as_it_judges_the_whole(
    rows: tuple[Path, list[dict[str, Any]]], shards: list[Rehearsed], tmp_path: Path
) -> None:
    """Same numbers, same judgements: no error rate depends on how a selection is divided."""
    whole = rehearse(tmp_path, "-m", rows[1][0]["expression"], traced=False)
    assert whole.status == 13, whole.output
    alone = {one["test"]: one for one in whole.records("verdict")}
    split = {one["test"]: one for done in shards for one in done.records("verdict")}
    assert alone.keys() == split.keys()
    for test, line in alone.items():
        assert split[test]["verdict"] == line["verdict"]
        assert split[test]["judgements"] == line["judgements"]
    assert sum(bool(line["judgements"]) for line in alone.values()) > 2


def test_the_report_of_all_shards_is_whole_and_of_one_of_them_an_error(
    rows: tuple[Path, list[dict[str, Any]]],
    shards: list[Rehearsed],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folders = [str(one.folder) for one in shards]
    matrix = ["--matrix", str(rows[0])]
    assert main(["report", *folders, *matrix, "--to", str(tmp_path / "out")]) == 13
    assert "SYNTHETIC" in capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert {one["id"] for one in report["scenarios"]} >= {
        name for row in rows[1] for name in row["scenarios"]
    }
    assert all(one["rerun"].endswith("--rehearse") for one in report["results"] if one["verdict"])
    assert all("--shard" not in one["rerun"] for one in report["results"])
    assert any(one["documented"] for one in report["results"])
    assert all(one["engine"] and one["gpus"] == 8 for one in report["scenarios"])

    for number, folder in enumerate(folders, 1):
        assert main(["report", folder, *matrix]) == 2
        missing = 3 - number
        assert f"shard {missing}/2 is missing" in capsys.readouterr().err


def test_a_shard_is_gone_on_with_as_the_same_shard_only(
    shards: list[Rehearsed], rows: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(shards[0].folder, copy, symlinks=True)
    words = ("-m", rows[1][0]["expression"], "--resume", str(copy))
    other = _without_folder(tmp_path, *words, "--shard", "2/2")
    assert other.status == 4, other.output
    assert "the shard differs from run" in other.output
    same = _without_folder(tmp_path, *words, "--shard", "1/2")
    assert same.status == 13, same.output
    assert len(same.records("shard")) == 1
    assert main(["report", str(copy), str(shards[1].folder)]) == 13


def _without_folder(tmp_path: Path, *words: str) -> Rehearsed:
    """A rehearsal that goes on in a run folder."""
    done = forked.run(
        [sys.executable, "-m", "pytest", *PLUGINS, "-q", "perf_tests", "--rehearse", *words],
        cwd=ROOT,
        env={
            **inherited("PERFGATE_"),
            "PERFGATE_HOME": str(tmp_path / "home"),
            "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
            **ONLY_NEEDED_PLUGINS,
        },
    )
    return Rehearsed(done.returncode, done.stdout + done.stderr, tmp_path / "run")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_empty_shard_is_told_and_is_no_success(tmp_path: Path, workers: tuple[str, ...]) -> None:
    words = ("-m", "b200 and latency", "--shard", "2/2", *workers)
    done = rehearse(tmp_path, *words, traced=False)
    assert done.status == 4, done.output
    assert "the shard is empty" in done.output


def test_what_is_no_shard_is_wrong_usage(tmp_path: Path) -> None:
    done = rehearse(tmp_path, "-m", "b200", "--shard", "4/3", traced=False)
    assert done.status == 4, done.output
    assert "no shard: '4/3'" in done.output


def test_a_shard_is_collected_without_being_run(tmp_path: Path) -> None:
    words = ("-m", f"({EXPRESSION}) and b200", "--collect-only")
    parts = [
        rehearse(tmp_path / shard[0], *words, "--shard", shard, traced=False)
        for shard in ("1/2", "2/2")
    ]
    names = [
        {line for line in one.output.splitlines() if line.startswith("perf_tests/")}
        for one in parts
    ]
    assert all(one.status == 0 for one in parts), parts[0].output
    assert all(names)
    assert not names[0] & names[1]
