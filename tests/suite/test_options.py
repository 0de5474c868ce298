"""The suite's options: known to pytest before any conftest, in every spelling."""

import json
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited, untraced

from perfgate.suite.options import joined

ROOT = Path(__file__).parents[2]
LOCAL = ("-m", "local", "--collect-only", "-q")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another project's checkout, whose settings of pytest would end the session."""
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--no-such"\n')
    return folder


def session(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A session in the checkout, for which nothing of the development set can be imported."""
    masks = tmp_path / "masks"
    masks.mkdir(exist_ok=True)
    for module in ("hypothesis", "matplotlib", "pytest_cov", "pytest_timeout"):
        (masks / f"{module}.py").write_text("raise ModuleNotFoundError('not for strangers')\n")
    return forked.run(
        (sys.executable, "-m", "pytest", *BENCHMARK, *words),
        cwd=ROOT,
        env={**inherited(), **ONLY_NEEDED_PLUGINS, "PYTHONPATH": str(masks)},
    )


def test_a_value_may_stand_by_itself(
    tmp_path: Path, elsewhere: Path, subtests: pytest.Subtests
) -> None:
    for words in (
        ("--self-reference", "fresh"),
        ("--engine-version", "1.3.0", "--rehearse"),
        ("--launcher", "local", "--budget", "4h"),
        ("--engine-repo", str(elsewhere)),
        ("--run-dir", str(elsewhere)),
        ("--resume", str(elsewhere)),
    ):
        with subtests.test(words[0]):
            done = session(tmp_path, *LOCAL, *words)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "local-smollm2-serve-c1" in done.stdout


def test_scenarios_from_elsewhere_are_those_that_are_collected(
    tmp_path: Path, elsewhere: Path
) -> None:
    text = (ROOT / "scenarios" / "local" / "smollm2.yaml").read_text()
    (elsewhere / "mine.yaml").write_text(text.replace("id: local-", "id: my-own-"))
    done = session(tmp_path, *LOCAL, "--scenarios", str(elsewhere))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "my-own-smollm2-serve-c1" in done.stdout


def test_pytest_of_other_projects_loads_the_options_alone() -> None:
    code = (
        "import json, sys, pytest; before = set(sys.modules); import perfgate.suite.options\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, timeout=60, check=True
    )
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name.startswith("perfgate")] == [
        "perfgate",
        "perfgate.suite",
        "perfgate.suite.options",
    ]
    assert not {"numpy", "scipy", "yaml", "rich"} & set(loaded)


@pytest.mark.parametrize("words", [(), ("--rehearse",)], ids=["plain", "rehearsal"])
def test_stand_ins_are_loaded_by_a_rehearsal_alone(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "loaded.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print(*(name for name in sys.modules if name.startswith('perfgate.')))\n"
    )
    done = subprocess.run(
        (sys.executable, "-m", "pytest", *BENCHMARK, *LOCAL, "-p", "loaded", *words),
        cwd=ROOT,
        env={**untraced(inherited()), **ONLY_NEEDED_PLUGINS, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert "perfgate.suite.plugin" in loaded
    assert any(name.startswith("perfgate.rehearsal") for name in loaded) is bool(words)


def test_a_folder_of_an_option_is_not_taken_for_the_place_of_the_tests() -> None:
    words = ["-m", "b200", "--run-dir", "/runs/1", "--scenarios", "mine", "-n", "2"]
    assert joined(words) == ["-m", "b200", "--run-dir=/runs/1", "--scenarios=mine", "-n", "2"]
    assert joined(["--run-dir=/runs/1", "perf_tests"]) == ["--run-dir=/runs/1", "perf_tests"]
    assert joined(["--resume", "/runs/1", "-q"]) == ["--resume=/runs/1", "-q"]
