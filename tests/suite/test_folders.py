"""Which scenarios and baselines a session has: option before environment before settings."""

import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

ROOT = Path(__file__).parents[2]
# Ends a session with the folders that it looks in.
PROBE = """\
import pytest
pytest_plugins = ["perfgate.suite.plugin"]
def pytest_collection_finish(session):
    from perfgate.core.paths import baselines_folder, scenario_folders
    print("\\nFOUND", baselines_folder(), *scenario_folders())
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(PROBE)
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nperfgate_scenarios = ["packaged", "own"]\n'
        'perfgate_baselines = "accepted"\n'
    )
    return tmp_path


def found(gate: Path, *options: str, **environment: str) -> list[str]:
    """The folder of baselines and those of scenarios."""
    done = forked.run(
        [sys.executable, "-m", "pytest", "-q", "-s", *BENCHMARK, *options],
        cwd=gate,
        env={**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    return line.split()[1:]


PACKAGED = str(ROOT / "scenarios")


def test_the_settings(gate: Path) -> None:
    assert found(gate) == [f"{gate}/accepted", PACKAGED, f"{gate}/own"]


def test_the_environment_wins_over_the_settings(gate: Path) -> None:
    environment = {"PERFGATE_SCENARIOS": f"x{os.pathsep}packaged", "PERFGATE_BASELINES": "y"}
    assert found(gate, **environment) == [f"{gate}/y", f"{gate}/x", PACKAGED]


def test_the_option_wins_over_the_environment(gate: Path) -> None:
    (gate / "z").mkdir()
    options = ("--scenarios", "packaged", "--scenarios", "z", "--baselines", "b")
    environment = {"PERFGATE_SCENARIOS": "x", "PERFGATE_BASELINES": "y"}
    (gate / "z" / "one.yaml").touch()
    assert found(gate, *options, **environment) == [f"{gate}/b", PACKAGED, f"{gate}/z"]


def test_a_setting_that_pytest_has_from_elsewhere(gate: Path) -> None:
    options = ("-o", "perfgate_scenarios=packaged else")
    assert found(gate, *options) == [f"{gate}/accepted", PACKAGED, f"{gate}/else"]


PLANTED = "open('ran', 'w')\npytest_plugins = ['perfgate.suite.plugin']\n"


def tried(gate: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A session in a folder below `gate`, as of somebody who does not know what is above."""
    (gate / "below").mkdir(exist_ok=True)
    return forked.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", *BENCHMARK],
        cwd=gate / "below",
        env={**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, **environment},
    )


@pytest.mark.parametrize("settings", ["pyproject.toml", "pytest.ini"])
def test_a_conftest_above_that_could_be_anothers_is_not_run(gate: Path, settings: str) -> None:
    (gate / "conftest.py").write_text(PLANTED)
    (gate / "test_other.py").unlink()
    if settings == "pytest.ini":
        (gate / settings).write_text("[pytest]\nperfgate_scenarios = own\n")
    gate.chmod(0o777)
    done = tried(gate)
    assert done.returncode == 4
    assert f"ERROR: {gate}: could be another user's, and was found, not named" in done.stderr
    assert f"export PERFGATE_ROOT={gate}" in done.stderr
    assert not (gate / "below" / "ran").exists()
    assert tried(gate, PERFGATE_ROOT=str(gate)).returncode == 5
    assert (gate / "below" / "ran").exists()


def test_sessions_of_other_tests_are_left_alone(gate: Path) -> None:
    (gate / "conftest.py").write_text("open('ran', 'w')\n")
    (gate / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    gate.chmod(0o777)
    assert tried(gate).returncode == 5
    assert (gate / "below" / "ran").exists()
