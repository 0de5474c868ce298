"""Which scenarios and baselines a session has: option before environment before settings."""

import os
from pathlib import Path

import forked
import pytest
from checkouts import ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited
from tables import each

# Ends a session with the folders that it looks in.
PROBE = """\
import pytest
pytest_plugins = ["perfgate.suite.plugin"]
def pytest_collection_finish(session):
    from perfgate.core.paths import baselines_folder, scenario_folders
    print("\\nFOUND", baselines_folder(), *scenario_folders())
"""
SETTINGS = """\
[tool.pytest.ini_options]
perfgate_scenarios = ["packaged", "own"]
perfgate_baselines = "accepted"
"""
PLANTED = "open('ran', 'w')\npytest_plugins = ['perfgate.suite.plugin']\n"
PACKAGED = str(ROOT / "scenarios")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(PROBE)
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "one.yaml").touch()
    (tmp_path / "below").mkdir()
    return tmp_path


def session(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    words = ["-q", "-s", *BENCHMARK, *options]
    return forked.session(
        words, folder, {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, **environment}
    )


ENVIRONMENT = {"PERFGATE_SCENARIOS": f"x{os.pathsep}packaged", "PERFGATE_BASELINES": "y"}
OPTIONS = ("--scenarios", "packaged", "--scenarios", "z", "--baselines", "b")


@each(
    ("options", "environment", "baselines", "scenarios"),
    [
        ((), {}, "accepted", (PACKAGED, "own")),
        ((), ENVIRONMENT, "y", ("x", PACKAGED)),
        (OPTIONS, ENVIRONMENT, "b", (PACKAGED, "z")),
        (("-o", "perfgate_scenarios=packaged else"), {}, "accepted", (PACKAGED, "else")),
    ],
)
def test_the_option_wins_over_the_environment_and_that_over_the_settings(
    gate: Path,
    options: tuple[str, ...],
    environment: dict[str, str],
    baselines: str,
    scenarios: tuple[str, ...],
) -> None:
    status, output = session(gate, *options, **environment)
    assert status == 0, output
    (line,) = [line for line in output.splitlines() if line.startswith("FOUND")]
    assert line.split()[1:] == [str(gate / one) for one in (baselines, *scenarios)]


@pytest.mark.parametrize("settings", ["pyproject.toml", "pytest.ini"])
def test_a_conftest_above_that_could_be_anothers_is_not_run(gate: Path, settings: str) -> None:
    (gate / "conftest.py").write_text(PLANTED)
    if settings == "pytest.ini":
        (gate / settings).write_text("[pytest]\nperfgate_scenarios = own\n")
    gate.chmod(0o777)
    status, output = session(gate / "below")
    assert status == 4
    assert f"ERROR: {gate}: could be another user's, and was found, not named" in output
    assert f"export PERFGATE_ROOT={gate}" in output
    assert not (gate / "below" / "ran").exists()
    assert session(gate / "below", "--collect-only", PERFGATE_ROOT=str(gate))[0] == 5
    assert (gate / "below" / "ran").exists()


def test_sessions_of_other_tests_are_left_alone(gate: Path) -> None:
    (gate / "conftest.py").write_text("open('ran', 'w')\n")
    (gate / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    gate.chmod(0o777)
    assert session(gate / "below")[0] == 5
    assert (gate / "below" / "ran").exists()
