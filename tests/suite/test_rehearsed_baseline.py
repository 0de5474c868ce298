"""The whole life of a baseline, rehearsed: recorded, promoted, compared with; and apart."""

import shutil
from pathlib import Path

import pytest
from checkouts import NAMED, ROOT
from rehearsing import OFFLINE, Rehearsed, rehearse

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


def judged(home: Path, tmp_path: Path, *options: str) -> Rehearsed:
    """A rehearsal that is compared with the baseline in `home`."""
    shutil.copytree(home, tmp_path / "home")
    return rehearse(tmp_path, "-k", OFFLINE, *options)


def roles(done: Rehearsed) -> list[str]:
    return [line["role"] for line in done.records("measurement")]


def assert_computed_anew(done: Rehearsed) -> None:
    """The raw files give every verdict and number, those of the controls too."""
    suite = load_suite(ROOT / "scenarios")
    found = recompute_run(read_run(done.folder), SuiteTests.of(suite))
    assert {one.test: one.verdict.value for one in found if one.verdict} == done.verdicts
    assert [told for one in found for told in one.differences] == []


def marks(done: Rehearsed) -> set[str]:
    return {
        one["mark"] for line in done.records("verdict") for one in line["judgements"] if one["mark"]
    }


def test_nothing_slow_takes_one_start_and_no_control(promoted: Path, tmp_path: Path) -> None:
    done = judged(promoted, tmp_path)
    assert set(done.verdicts.values()) == {"PASS"}, done.output
    assert (done.status, roles(done)) == (13, ["new"])
    assert "compared with: a rehearsal of tensorrt-llm" in done.output
    assert all(line["synthetic"] for line in done.records("verdict"))
    assert "control" not in (done.folder / "summary.md").read_text()


def test_a_slow_build_beside_controls_that_are_not(promoted: Path, tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    done = judged(promoted, tmp_path, "--rehearse-fault", "slow:4%", f"--junitxml={report}")
    assert set(done.verdicts.values()) == {"REGRESSION"}, done.output
    assert done.status == 1
    assert roles(done) == ["new", "new", "baseline_control", "baseline_control", "new"]
    assert marks(done) == set()
    assert "control: tensorrt-llm" in done.output
    assert ", 2 starts" in (done.folder / "summary.md").read_text()
    assert '.controls" value="2"' in report.read_text()
    engines = {line["role"]: line["engine"] for line in done.records("measurement")}
    assert engines.keys() == {"new", "baseline_control"}
    assert_computed_anew(done)


def test_a_slow_host_is_no_regression(promoted: Path, tmp_path: Path) -> None:
    done = judged(promoted, tmp_path, "--rehearse-fault", "slow_host:4%")
    assert set(done.verdicts.values()) == {"PASS"}, done.output
    assert done.status == 13
    assert marks(done) == {"HOST_SHIFT"}
    assert "machine, not build" in done.output
    assert "machine, not build" in (done.folder / "summary.md").read_text()
    assert_computed_anew(done)


def test_a_control_that_cannot_start_is_told(promoted: Path, tmp_path: Path) -> None:
    done = judged(
        promoted, tmp_path, "--rehearse-fault", "slow_no_control:8%", "--control=required"
    )
    assert set(done.verdicts.values()) == {"INCONCLUSIVE"}, done.output
    assert done.status == 10
    assert marks(done) == {"NO_CONTROL"}
    assert set(roles(done)) == {"new"}
    told = (done.folder / "summary.md").read_text()
    assert "control: none (it failed twice: fresh start 3: cuda_error" in told
    assert "NO_CONTROL" in done.output
    assert_computed_anew(done)
