"""The whole life of a baseline, rehearsed: recorded, promoted, compared with; and apart."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from checkouts import NAMED, ROOT
from rehearsing import OFFLINE, rehearse

from perfgate.cli.main import main
from perfgate.release.recomputation import recompute_run
from perfgate.release.required_tests import SuiteTests
from perfgate.runs.ended_run import read_run
from perfgate.scenarios.files import load_suite

pytestmark = pytest.mark.slow


def perfgate(home: Path, *words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFGATE_HOME", str(home))
        return main(["baseline", *words])


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine store with the baseline of a rehearsal in it, which only its own words let in."""
    folder = tmp_path_factory.mktemp("promoted")
    home = folder / "home"
    run = str(rehearse(folder, "-k", OFFLINE).folder)
    assert perfgate(home, "record", run) == 2
    assert perfgate(home, "record", "--rehearsal", run) == 0
    (candidate,) = (home / "rehearsal" / "candidates").rglob("*.json")
    assert perfgate(home, "promote", str(candidate), *NAMED) == 2
    assert perfgate(home, "promote", "--rehearsal", str(candidate), *NAMED) == 0
    return home


BOTH = {"new": 3, "baseline_control": 2}
FAILED = "control: none (it failed twice: fresh start 3: cuda_error"
CASES = [
    # Fault, control → verdict, status, starts, marks, what is told everywhere.
    ("", "auto", "PASS", 13, {"new": 1}, "", "a rehearsal of tensorrt-llm"),
    ("slow:4%", "auto", "REGRESSION", 1, BOTH, "", ", 2 starts"),
    ("slow_host:4%", "auto", "PASS", 13, BOTH, "HOST_SHIFT", "machine, not build"),
    ("slow_no_control:8%", "required", "INCONCLUSIVE", 10, {"new": 3}, "NO_CONTROL", FAILED),
]


@pytest.mark.parametrize(
    ("fault", "control", "verdict", "status", "starts", "mark", "told"),
    CASES,
    ids=["as it was", "a slow build", "a slow host", "a control that cannot start"],
)
def test_a_rehearsal_beside_its_baseline(
    promoted: Path,
    tmp_path: Path,
    fault: str,
    control: str,
    verdict: str,
    status: int,
    starts: dict[str, int],
    mark: str,
    told: str,
) -> None:
    shutil.copytree(promoted, tmp_path / "home")
    report = tmp_path / "junit.xml"
    options = [f"--control={control}", f"--junitxml={report}"]
    options += [f"--rehearse-fault={fault}"] if fault else []
    done = rehearse(tmp_path, "-k", OFFLINE, *options)
    assert (done.status, {*done.verdicts.values()}) == (status, {verdict}), done.output
    roles = [line["role"] for line in done.records("measurement")]
    assert Counter(roles) == starts
    if starts == BOTH:
        assert roles == ["new", "new", "baseline_control", "baseline_control", "new"]
        assert '.controls" value="2"' in report.read_text()
        assert "control: tensorrt-llm" in done.output
    verdicts = done.records("verdict")
    assert all(line["synthetic"] for line in verdicts)
    marks = {one["mark"] for line in verdicts for one in line["judgements"] if one["mark"]}
    assert marks == {mark} - {""}
    summary = (done.folder / "summary.md").read_text()
    assert told in summary
    assert ("control" in summary) is bool(fault)
    # The raw files give every verdict and number, those of the controls too.
    suite = SuiteTests.of(load_suite(ROOT / "scenarios"))
    found = recompute_run(read_run(done.folder), suite)
    assert {one.test: one.verdict.value for one in found if one.verdict} == done.verdicts
    assert [told for one in found for told in one.differences] == []
