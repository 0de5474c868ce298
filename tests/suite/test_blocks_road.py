"""Two builds that are up together, with blocks of load in turns, on the road."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import Suite
from road_words import ACCURACY, POINT, SLOWER, SWEEP

pytestmark = pytest.mark.slow
# Whatever else this machine does throws no pair away.
NO_ROOM = "import perfgate.campaign.fresh_start as one\none._ROOM = 1e12\n"
SLOWER_B = ("--ab", "A=this", "B=engine.settings.cpu_threads=1")
BLOCKS = (("noise: measured", "noise: measured\n      blocks: 3"),)


@pytest.fixture
def both(suite: Suite) -> Suite:
    suite.edit(*BLOCKS)
    return suite


def folders(suite: Suite) -> list[str]:
    return sorted(one.name for one in (suite.run_folder / "standin-serve").iterdir())


def test_an_unchanged_build_is_judged_beside_itself_and_recomputed(both: Suite) -> None:
    done = both.run(*SWEEP, traced=True)
    # Of a busy machine's time nothing is asked here; tests/judging has the verdicts of values.
    assert done.status in (0, 10), done.output
    assert "4 fresh starts beside the reference" in done.output or done.status == 0
    assert folders(both)[:2] == ["start-1-new", "start-2-reference"]
    # The whole load is put on the first start alone.
    assert [one.parts[-3] for one in both.run_folder.rglob("c1/client.sh")] == ["start-1-new"]
    start = both.run_folder / "standin-serve/start-1-new"
    other = both.run_folder / "standin-serve/start-2-reference"
    pairs = json.loads((start / "c1/blocks_new.json").read_text())["pairs"]
    assert [list(one["blocks"]) for one in pairs] == [
        ["new", "reference"],
        ["reference", "new"],
        ["new", "reference"],
    ]
    assert json.loads((other / "c1/blocks_reference.json").read_text())["pairs"] == pairs
    of_two_streams = json.loads((start / "c2/blocks_new.json").read_text())
    assert len(of_two_streams["pairs"]) == 2
    (line, _) = done.records("verdict")
    assert both.judged_again()["standin-serve-c1"] == line["verdict"]
    assert "pairs of blocks" in done.summary
    blocks = other / "c1/blocks_reference.json"
    told = json.loads(blocks.read_text())
    told["pairs"][0]["blocks"]["reference"]["seconds"] *= 2
    blocks.write_text(json.dumps(told))
    assert any("output_throughput" in one for one in both.differences())


def test_a_slower_build_is_a_regression(both: Suite) -> None:
    """In one of three sessions: other tests beside this one can make the machine too noisy."""
    for _ in range(3):
        done = both.run(*POINT, *SLOWER)
        if done.status != 10:
            break
    done.require(1, {"c1": "REGRESSION"}, "beside the reference")


@pytest.mark.parametrize(
    ("fault", "error", "told"),
    [
        ("short-answers", "client_failed", "15 tokens, not the 16 asked for"),
        ("die-on-load", "server_died", "ended by itself"),
    ],
)
def test_broken_answers_and_dead_servers_are_errors(
    both: Suite, fault: str, error: str, told: str
) -> None:
    done = both.run(*POINT, fault=fault)
    done.require(11, {"c1": "ERROR"}, told)
    (line,) = done.records("verdict")
    assert line["error"]["error_class"] == error


def test_a_busy_machine_is_told_and_proves_nothing(both: Suite) -> None:
    """Also without the whole load, which can be left out."""
    both.edit(("others_cpu: 1", "others_cpu: 0"))
    both.edit(("blocks: 3", "blocks: 3\n      whole_load: false"))
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = both.run(*POINT)
    finally:
        neighbour.kill()
        neighbour.wait()
    done.require(10, {"c1": "INCONCLUSIVE"}, "of blocks were thrown away: other programs used")
    assert list(both.run_folder.rglob("c1/blocks_*.json"))
    assert not list(both.run_folder.rglob("c1/client.sh"))


def test_without_memory_for_two_servers_they_take_turns(both: Suite, tmp_path: Path) -> None:
    (tmp_path / "no_room.py").write_text(NO_ROOM)
    paths = os.pathsep.join((str(tmp_path), both.environment["PYTHONPATH"]))
    done = both.run(*POINT, "-p", "no_room", PYTHONPATH=paths)
    assert done.status in (0, 10), done.output
    assert "no memory for two servers: the builds are measured one by one" in done.output
    assert len(folders(both)) == 1 + 4 + 4  # the first try, then a reference and a build in turns


def test_two_builds_that_are_compared_are_up_together(both: Suite) -> None:
    done = both.run(*POINT, ACCURACY, "-k", "c1 or sums", *SLOWER_B, traced=True)
    done.require(1, {"c1": "REGRESSION", "sums": "PASS"}, "pairs of blocks")
    assert {"start-1-b", "start-2-a", "start-3-b"} <= {*folders(both)}
    pairs = json.loads((both.run_folder / "standin-serve/start-1-b/c1/blocks_b.json").read_text())
    assert {*pairs["pairs"][0]["blocks"]} == {"a", "b"}
    assert both.judged_again() == {
        line["name"]: line["verdict"] for line in done.records("verdict")
    }


def test_two_builds_without_memory_for_both_are_compared_in_turns(
    both: Suite, tmp_path: Path
) -> None:
    (tmp_path / "no_room.py").write_text(NO_ROOM)
    paths = os.pathsep.join((str(tmp_path), both.environment["PYTHONPATH"]))
    done = both.run(*POINT, *SLOWER_B, "-p", "no_room", PYTHONPATH=paths)
    done.require(1, {"c1": "REGRESSION"}, "no memory for two servers")
    assert both.judged_again() == {"standin-serve-c1": "REGRESSION"}
    assert folders(both)[:3] == ["start-1-b", "start-2-a", "start-3-b"]


def test_a_build_that_does_not_start_beside_the_other_is_named(both: Suite) -> None:
    done = both.run(*POINT, *SLOWER_B, fault="die-at-start:a")
    done.require(11, {"c1": "ERROR"}, "build A: ")
    (line,) = done.records("verdict")
    assert line["error"]["error_class"] == "model_file"
    assert line["folder"].endswith("start-2-a")
