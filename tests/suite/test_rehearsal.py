"""Rehearsals: the real suite with stand-ins for the engine's programs."""

import json
import os
import re
from pathlib import Path

import forked
import pytest
from sessions import ONLY_NEEDED_PLUGINS, inherited
from test_road import PLUGINS, Finished

from perfgate.cli.main import main
from perfgate.runs.folder_contents import FILES, RECORD_KINDS

ROOT = Path(__file__).parents[2]

OFFLINE = "h200-r1-fp8-max-throughput"

pytestmark = pytest.mark.slow


class Rehearsed(Finished):
    """A finished rehearsal; its verdicts by full name, as it is of several scenarios."""

    @property
    def verdicts(self) -> dict[str, str]:
        return {line["name"]: line["verdict"] for line in self.records("verdict")}


def rehearse(tmp_path: Path, *options: str, traced: bool = True) -> Rehearsed:
    """One rehearsal.

    Args:
        tmp_path: for its files.
        options: of pytest.
        traced: the lines of its programs count for the coverage of the tests, which takes time.
    """
    folder = tmp_path / "run"
    words = [*PLUGINS, "-q", "-p", "no:cacheprovider", "perf_tests"]
    words += ["--rehearse", "--run-dir", str(folder), *options]
    environment = inherited("PERFGATE_") | {
        "PERFGATE_HOME": str(tmp_path / "home"),
        "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
        **ONLY_NEEDED_PLUGINS,
    }
    return Rehearsed(*forked.session(words, ROOT, environment, traced=traced), folder)


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rehearsed]:
    """A rehearsal in which all is well, and where its files are: what several tests read."""
    tmp_path = tmp_path_factory.mktemp("well")
    files = (
        "--junitxml",
        str(tmp_path / "junit.xml"),
        "--benchmark-json",
        str(tmp_path / "b.json"),
    )
    selected = ("-k", "b200-r1-fp4-fp16kv-max-throughput and not floor")
    return tmp_path, rehearse(tmp_path, *selected, *files)


def test_the_folder_of_a_run_holds_what_its_table_says(well: tuple[Path, Rehearsed]) -> None:
    _, done = well
    there = {f"{one.name}/" if one.is_dir() else one.name for one in done.folder.iterdir()}
    assert there - FILES.keys() == {"b200-r1-fp4-fp16kv-max-throughput/"}, (
        "perfgate/runs/folder_contents.py names each file; then `make reference`"
    )
    lines = (done.folder / "records.jsonl").read_text().splitlines()
    kinds = {json.loads(line)["record"] for line in lines}
    assert kinds <= RECORD_KINDS.keys()
    starts = [one.name for one in (done.folder / "b200-r1-fp4-fp16kv-max-throughput").iterdir()]
    assert starts
    assert all(re.fullmatch(r"start-\d+-\w+", name) for name in starts)


def test_a_rehearsal_in_which_all_is_well_does_not_end_in_0(
    well: tuple[Path, Rehearsed],
) -> None:
    tmp_path, done = well
    assert set(done.verdicts.values()) == {"PASS"}, done.output
    assert done.status == 13, done.output
    assert "nothing is claimed of any engine" in done.output
    assert '<property name="synthetic" value="true"' in (tmp_path / "junit.xml").read_text()
    entries = json.loads((tmp_path / "b.json").read_text())["benchmarks"]
    assert len({one["extra_info"]["metric"] for one in entries}) == len(entries) > 1
    assert all(one["extra_info"]["synthetic"] for one in entries)
    rows = [line for line in done.output.splitlines() if " tokens/s " in line]
    assert rows
    assert all(row.startswith("synthetic ") for row in rows)
    assert "Synthetic values:" in (done.folder / "summary.md").read_text()
    (played,) = done.records("rehearsal")
    assert played["pages"]["tensorrt-llm 1.0.0"]["trtllm-bench throughput"] == "1.0.0rc4"


def test_nothing_of_a_rehearsal_becomes_a_baseline(
    well: tuple[Path, Rehearsed], capsys: pytest.CaptureFixture[str]
) -> None:
    _, done = well
    assert main(["baseline", "record", str(done.folder)]) == 2
    assert "synthetic" in capsys.readouterr().err


def test_the_gate_never_passes_a_rehearsal(tmp_path: Path) -> None:
    done = rehearse(
        tmp_path, "--gate", "-k", "b200-r1-fp4-fp16kv-max-throughput and not floor", traced=False
    )
    assert done.status not in (0,)


def test_a_slow_build_is_worse_than_the_documented_value(tmp_path: Path) -> None:
    done = rehearse(tmp_path, "-k", OFFLINE, "--rehearse-fault", "slow:20%", traced=False)
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
        (folder / file.name).write_text(text)
    name = "b200-r1-0528-fp4-fp8kv-max-throughput"
    done = rehearse(
        tmp_path, "--scenarios", str(folder), "-k", f"{name} and not floor", traced=False
    )
    assert (done.status, list(done.verdicts.values())) == (13, ["PASS"]), done.output
    summary = (done.folder / "summary.md").read_text()
    assert "the report does not show kv_cache_fraction" in summary
