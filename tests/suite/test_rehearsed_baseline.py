"""The whole life of a baseline, rehearsed: recorded, promoted, compared with; and apart."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import inherited
from test_rehearsal import OFFLINE, ROOT, Rehearsed, rehearse

from perfgate.release.recomputation import recompute_run
from perfgate.scenarios.files import load_suite

pytestmark = pytest.mark.slow


def perfgate(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**inherited("PERFGATE_"), "PERFGATE_HOME": str(tmp_path / "home")}
    argv = [sys.executable, "-m", "perfgate", "baseline", *words]
    return subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_rehearsal_is_compared_with_the_baseline_of_an_earlier_one(tmp_path: Path) -> None:
    selected = ("-k", OFFLINE)
    runs = []
    for number in (1, 2):
        done = rehearse(tmp_path, *selected, traced=False)
        assert done.status == 13, done.output
        runs.append(str(done.folder.rename(tmp_path / f"run-{number}")))
    refused = perfgate(tmp_path, "record", *runs)
    assert refused.returncode == 2, refused.stdout
    assert "its numbers are synthetic" in refused.stderr
    recorded = perfgate(tmp_path, "record", "--rehearsal", *runs)
    assert recorded.returncode == 0, recorded.stderr
    (candidate,) = (tmp_path / "home" / "rehearsal" / "candidates").rglob("*.json")
    named = ("--by", "Ada", "--reason", "the first one")
    refused = perfgate(tmp_path, "promote", str(candidate), *named)
    assert refused.returncode == 2, refused.stdout
    promoted = perfgate(tmp_path, "promote", "--rehearsal", str(candidate), *named)
    assert promoted.returncode == 0, promoted.stderr

    again = rehearse(tmp_path, *selected, traced=False)
    assert set(again.verdicts.values()) == {"PASS"}, again.output
    assert again.status == 13
    assert "compared with: a rehearsal of tensorrt-llm" in again.output
    assert all(line["synthetic"] for line in again.records("verdict"))
    again.folder.rename(tmp_path / "run-3")
    slow = rehearse(tmp_path, *selected, "--rehearse-fault", "slow:8%", traced=False)
    assert set(slow.verdicts.values()) == {"REGRESSION"}, slow.output
    assert slow.status == 1


# Controls: starts of the baseline's build, where the build under test looks slower.


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine store with the baseline of a rehearsal in it."""
    folder = tmp_path_factory.mktemp("promoted")
    run = str(rehearse(folder, "-k", OFFLINE, traced=False).folder)
    assert perfgate(folder, "record", "--rehearsal", run).returncode == 0
    (candidate,) = (folder / "home" / "rehearsal" / "candidates").rglob("*.json")
    named = ("--by", "Ada", "--reason", "the first one")
    assert perfgate(folder, "promote", "--rehearsal", str(candidate), *named).returncode == 0
    return folder / "home"


def judged(home: Path, tmp_path: Path, *options: str) -> Rehearsed:
    """A rehearsal that is compared with the baseline in `home`."""
    shutil.copytree(home, tmp_path / "home")
    return rehearse(tmp_path, "-k", OFFLINE, *options, traced=False)


def roles(done: Rehearsed) -> list[str]:
    return [line["role"] for line in done.records("measurement")]


def assert_computed_anew(done: Rehearsed) -> None:
    """The raw files give every verdict and number, those of the controls too."""
    suite = load_suite(ROOT / "scenarios")
    found = recompute_run(done.folder, suite.scenarios, suite.claims)
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


def test_a_very_slow_build_needs_one_control(promoted: Path, tmp_path: Path) -> None:
    done = judged(promoted, tmp_path, "--rehearse-fault", "slow:8%")
    assert (done.status, set(done.verdicts.values())) == (1, {"REGRESSION"}), done.output
    assert roles(done) == ["new", "new", "baseline_control"]


def test_a_slow_host_is_no_regression(promoted: Path, tmp_path: Path) -> None:
    done = judged(promoted, tmp_path, "--rehearse-fault", "slow_host:4%")
    assert set(done.verdicts.values()) == {"PASS"}, done.output
    assert done.status == 13
    assert marks(done) == {"HOST_SHIFT"}
    assert "machine, not build" in done.output
    assert "machine, not build" in (done.folder / "summary.md").read_text()
    assert_computed_anew(done)


@pytest.mark.parametrize(
    ("options", "verdict", "status"),
    [((), "REGRESSION", 1), (("--control=required",), "INCONCLUSIVE", 10)],
)
def test_a_control_that_cannot_start_is_told(
    promoted: Path, tmp_path: Path, options: tuple[str, ...], verdict: str, status: int
) -> None:
    done = judged(promoted, tmp_path, "--rehearse-fault", "slow_no_control:8%", *options)
    assert set(done.verdicts.values()) == {verdict}, done.output
    assert done.status == status
    assert marks(done) == {"NO_CONTROL"}
    assert set(roles(done)) == {"new"}
    told = (done.folder / "summary.md").read_text()
    assert "control: none (it failed twice: fresh start 3: cuda_error" in told
    assert "NO_CONTROL" in done.output
    assert_computed_anew(done)
