"""Rehearsals: what is marked as synthetic, which folder they leave, which secrets they keep."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from documented_set import documented_suite
from planted import CommandLines, leaks, variables, write_reports
from rehearsing import Rehearsed, rehearse
from sizes import sized

from perfgate.cli.main import main
from perfgate.runs.folder_contents import FILES, RECORD_KINDS

NAME = "b200-r1-fp4-fp16kv-max-throughput"

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Well:
    """A rehearsal in which all is well, with secrets in its environment; what several tests read.

    Attributes:
        place: where all its files are.
        done: the session.
        command_lines: all that there were meanwhile.
    """

    place: Path
    done: Rehearsed
    command_lines: CommandLines


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Well:
    place = tmp_path_factory.mktemp("well")
    files = (f"--junitxml={place / 'junit.xml'}", f"--benchmark-json={place / 'b.json'}")
    selected = ("--gate", "-k", f"{NAME} and not floor")
    with CommandLines() as watch:
        done = rehearse(place, *selected, *files, traced=True, **variables("environment"))
    return Well(place, done, watch)


def test_the_folder_of_a_run_holds_what_its_table_says(well: Well) -> None:
    folder = well.done.folder
    there = {f"{one.name}/" if one.is_dir() else one.name for one in folder.iterdir()}
    assert there - FILES.keys() == {f"{NAME}/"}, (
        "perfgate/runs/folder_contents.py names each file; then `make reference`"
    )
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert {json.loads(line)["record"] for line in lines} <= RECORD_KINDS.keys()
    starts = [one.name for one in (folder / NAME).iterdir()]
    assert starts
    assert all(re.fullmatch(r"start-\d+-\w+", name) for name in starts)


def test_a_rehearsal_in_which_all_is_well_does_not_end_in_0_nor_becomes_a_baseline(
    well: Well, capsys: pytest.CaptureFixture[str]
) -> None:
    done = well.done
    assert set(done.verdicts.values()) == {"PASS"}, done.output
    assert done.status == 13, done.output
    assert "nothing is claimed of any engine" in done.output
    assert '<property name="synthetic" value="true"' in (well.place / "junit.xml").read_text()
    entries = json.loads((well.place / "b.json").read_text())["benchmarks"]
    assert len({one["extra_info"]["metric"] for one in entries}) == len(entries) > 1
    assert all(one["extra_info"]["synthetic"] for one in entries)
    rows = [line for line in done.output.splitlines() if "PASS  " in line]
    assert rows
    assert all(row.startswith("synthetic ") for row in rows)
    assert "Synthetic values:" in (done.folder / "summary.md").read_text()
    (played,) = done.records("rehearsal")
    assert played["pages"]["tensorrt-llm 1.0.0"]["trtllm-bench throughput"] == "1.0.0rc4"
    assert main(["baseline", "record", str(done.folder)]) == 2
    assert "synthetic" in capsys.readouterr().err


def test_a_rehearsal_tells_no_secret(well: Well) -> None:
    assert len(write_reports(well.done.folder, well.place / "reports")) > 5
    assert not leaks(well.place, well.done.output, frozenset())
    assert not well.command_lines.found


# Templates only where they are named. A release is one of TensorRT-LLM.
EVERY = "(b200 or h200 or gb200 or explore) and not vllm and not sglang"
REFUSED = {"h200-v3-fp8-gpqa"}
# On each push the newer release plays for one GPU; the older one plays in test_rehearsal.py.
WHOLE = [("1.3.0", EVERY, REFUSED), ("1.0.0", EVERY, REFUSED)]
SELECTIONS = sized([("1.3.0", "gb200", set())], WHOLE)


@pytest.mark.nightly
@pytest.mark.parametrize(("release", "gpus", "refused"), SELECTIONS)
def test_every_gpu_scenario_rehearses(
    tmp_path: Path, release: str, gpus: str, refused: set[str]
) -> None:
    options = ("-m", gpus, "--engine-version", release, *sized((), ("-n", "2")))
    done = rehearse(tmp_path, *options)
    selected = {test for line in done.records("selected") for test in line["tests"]}
    assert set(done.verdicts.values()) == {"PASS", "NO_BASELINE"}, done.output[-4000:]
    cannot = [line for line in done.records("skipped") if "cannot do this" in line["reason"]]
    documented = {scenario.id for scenario in documented_suite().scenarios}
    assert {line["scenario"] for line in cannot} & documented == refused
    assert len(done.records("verdict")) + len(done.records("skipped")) == len(selected)
    assert "SYNTHETIC" in done.output
    assert all(line["synthetic"] for line in done.records("verdict"))
    assert all(line["synthetic"] for line in done.records("measurement"))
    assert "SYNTHETIC" in (done.folder / "summary.md").read_text()
