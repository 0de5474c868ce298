"""Rehearsals: what is marked as synthetic, which folder they leave, which secrets they keep."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from checkouts import ROOT
from planted import CommandLines, leaks, variables, write_reports
from rehearsing import OFFLINE, Rehearsed, rehearse

from ci.maintenance.reference_tables import FILES, RECORD_KINDS
from perfgate.cli.main import main

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
        "ci/maintenance/reference_tables.py names each file; then `make reference`"
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


def test_a_slow_build_is_worse_than_the_documented_value(tmp_path: Path) -> None:
    done = rehearse(tmp_path, "-k", OFFLINE, "--rehearse-fault", "slow:20%")
    (line,) = [one for one in done.records("verdict") if one["probe"].startswith("c")]
    assert line["verdict"] == "REGRESSION", done.output
    assert "misses the document by more than " in done.output
    assert done.status == 1


def test_a_setting_that_the_report_does_not_show_is_told(tmp_path: Path) -> None:
    """1.1 drops the command line's KV share beside a mapping in the file, and reports null."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    for file in (ROOT / "scenarios" / "markers.yaml", *(ROOT / "scenarios" / "b200").iterdir()):
        text = file.read_text().replace('engine_version: "1.0.0"', 'engine_version: "1.1.0rc6"')
        text = re.sub(" *engine_commit: .*\n", "", text)  # of a commit's document it is kept
        (folder / file.name).write_text(text)
    name = "b200-r1-0528-fp4-fp8kv-max-throughput"
    done = rehearse(tmp_path, f"--scenarios={folder}", "-k", f"{name} and not floor")
    assert (done.status, list(done.verdicts.values())) == (13, ["PASS"]), done.output
    summary = (done.folder / "summary.md").read_text()
    assert "the report does not show kv_cache_fraction" in summary
