"""Shards on the road: a printed matrix, a rehearsal of each row, and the report of all of them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from checkouts import Finished, rehearse

from perfgate.cli.main import main

pytestmark = pytest.mark.slow

# Three scenarios whose documents have numbers, so that the gate judges.
EXPRESSION = "offline and (latency or throughput) and not (chunked_context or explore or claim)"


# The rows of a printed matrix of two shards, and a rehearsal of each.
Divided = list[tuple[dict[str, Any], Finished]]


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Divided:
    place = tmp_path_factory.mktemp("matrix")
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr("builtins.print", lambda *words, **_: said.append(" ".join(words)))
        assert main(["ci", "matrix", "-m", EXPRESSION, "--gpu", "B200", "--shards", "2"]) == 0
    (line,) = [one for one in said if one.startswith("{")]
    (place / "matrix.json").write_text(line)
    done = []
    for row, more in zip(json.loads(line)["include"], (("--html",), ("-n", "1")), strict=True):
        words = ("-m", row["expression"], "--shard", row["shard"], *more)
        done.append((row, rehearse(place / row["name"], *words)))
    return done


def test_each_row_measures_its_scenarios_and_no_others(divided: Divided) -> None:
    selections = set()
    for row, done in divided:
        done.require(13)
        (shard,) = done.records("shard")
        assert f"{shard['number']}/{shard['of']}" == row["shard"]
        assert shard["scenarios"][shard["number"] - 1] == row["scenarios"]
        assert shard["expression"] == row["expression"]
        selections.add(shard["selection"])
        assert {one["scenario"] for one in done.measured} == set(row["scenarios"])
        (end,) = done.records("ended")
        assert (end["status"], end["failed"], end["bugs"]) == (13, [], [])
    assert len(selections) == 1
    pages = [done.folder / "report.html" for _, done in divided]
    assert [page.is_file() for page in pages] == [True, False]
    assert divided[0][0]["scenarios"][0] in pages[0].read_text()


def test_the_gate_judges_in_shards_as_it_judges_the_whole(divided: Divided, tmp_path: Path) -> None:
    """Same numbers, same judgements: no error rate depends on how a selection is divided."""
    whole = rehearse(tmp_path, "-m", divided[0][0]["expression"])
    whole.require(13)
    alone, split = (
        {
            line["test"]: (line["verdict"], line["judgements"])
            for one in done
            for line in one.records("verdict")
        }
        for done in ([whole], [one for _, one in divided])
    )
    assert alone == split
    assert sum(bool(judgements) for _, judgements in alone.values()) > 2


def test_the_report_of_all_shards_is_whole_and_of_one_of_them_an_error(
    divided: Divided, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(one.folder) for _, one in divided]
    matrix = ["--matrix", str(divided[0][1].folder.parents[1] / "matrix.json")]
    assert main(["report", *folders, *matrix, "--to", str(tmp_path / "out")]) == 13
    assert "SYNTHETIC" in capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    measured = {name for row, _ in divided for name in row["scenarios"]}
    assert {one["id"] for one in report["scenarios"]} >= measured
    assert all(one["rerun"].endswith("--rehearse") for one in report["results"] if one["verdict"])
    assert all("--shard" not in one["rerun"] for one in report["results"])
    assert any(one["documented"] for one in report["results"])
    assert all(one["engine"] and one["gpus"] == 8 for one in report["scenarios"])
    for folder, missing in zip(folders, "21", strict=True):
        assert main(["report", folder, *matrix]) == 2
        assert f"shard {missing}/2 is missing" in capsys.readouterr().err


def test_a_shard_is_gone_on_with_as_the_same_shard_only(divided: Divided, tmp_path: Path) -> None:
    first, second = (one for _, one in divided)
    copy = shutil.copytree(first.folder, tmp_path / "run", symlinks=True)
    words = ("-m", divided[0][0]["expression"], f"--resume={copy}", "--shard")
    rehearse(tmp_path, *words, "2/2").require(4, None, "the shard differs from run")
    same = rehearse(tmp_path, *words, "1/2")
    same.require(13)
    assert len(same.records("shard")) == 1
    assert main(["report", str(copy), str(second.folder)]) == 13
