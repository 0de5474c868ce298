"""The suite's options: known to pytest before any conftest, in every spelling."""

import json
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from checkouts import ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited, untraced
from tables import each

LOCAL = ("-m", "local", "--collect-only", "-q")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another project's checkout, whose settings of pytest would end the session."""
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--no-such"\n')
    text = (ROOT / "scenarios" / "local" / "smollm2.yaml").read_text()
    (folder / "mine.yaml").write_text(text.replace("id: local-", "id: my-own-"))
    return folder


@each(
    ("words", "scenario"),
    [
        (("--self-reference", "fresh", "--engine-version", "1.3.0", "--rehearse"), "local"),
        (("--launcher", "local", "--budget", "4h", "--engine-repo", "{}"), "local"),
        (("--run-dir", "{}"), "local"),
        (("--resume", "{}"), "local"),
        (("--scenarios", "{}"), "my-own"),
    ],
)
def test_a_value_may_stand_by_itself(
    tmp_path: Path, elsewhere: Path, words: tuple[str, ...], scenario: str
) -> None:
    """Also where nothing of the development set can be imported."""
    for module in ("hypothesis", "matplotlib", "pytest_cov", "pytest_timeout"):
        (tmp_path / f"{module}.py").write_text("raise ModuleNotFoundError('not for strangers')\n")
    environment = {**inherited(), **ONLY_NEEDED_PLUGINS, "PYTHONPATH": str(tmp_path)}
    given = [word.replace("{}", str(elsewhere)) for word in words]
    status, output = forked.session([*BENCHMARK, *LOCAL, *given], ROOT, environment)
    assert status == 0, output
    assert f"{scenario}-smollm2-serve-c1" in output


def test_pytest_of_other_projects_loads_the_options_alone() -> None:
    code = (
        "import json, sys, pytest; before = set(sys.modules); import perfgate.suite.options\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    call = (sys.executable, "-c", code)
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
    loaded = json.loads(done.stdout)
    options = ["perfgate", "perfgate.suite", "perfgate.suite.options"]
    assert [name for name in loaded if name.startswith("perfgate")] == options
    assert not {"numpy", "scipy", "yaml", "rich"} & set(loaded)


def test_stand_ins_are_loaded_by_a_rehearsal_alone(tmp_path: Path) -> None:
    (tmp_path / "loaded.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print(*(name for name in sys.modules if name.startswith('perfgate.')))\n"
    )
    done = subprocess.run(
        (sys.executable, "-m", "pytest", *BENCHMARK, *LOCAL, "-p", "loaded"),
        cwd=ROOT,
        env={**untraced(inherited()), **ONLY_NEEDED_PLUGINS, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert "perfgate.suite.plugin" in loaded
    assert not any(name.startswith("perfgate.rehearsal") for name in loaded)


TAKEN = ("--record", "--shard", "--gate", "--budget", "--control", "--html", "--resume")
THEIRS = f"""
def pytest_addoption(parser):
    for name in {TAKEN}:
        parser.addoption(name, action="store_true")
"""
CHECKED = """
def test_of_theirs(request):
    option = request.config.getoption
    assert option("--record") and option("--resume") and not option("--gate")
    assert option("--perfgate-gate") and not option("--perfgate-record")
    assert option("--perfgate-budget") == "4h" and option("--shape") == ["8/8"]
    assert option("--perfgate-control") == option("perfgate_control") == "none"
"""


@pytest.mark.parametrize("first", [True, False], ids=["plugin-before", "conftest-after"])
@pytest.mark.parametrize("workers", [(), (*XDIST, "-n", "1")], ids=["alone", "workers"])
def test_a_project_keeps_its_own_options(
    tmp_path: Path, first: bool, workers: tuple[str, ...]
) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS if first else "")
    conftest = 'pytest_plugins = ["perfgate.suite.plugin"]\n' + ("" if first else THEIRS)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_it.py").write_text(CHECKED)
    words = ("-p", "theirs", *BENCHMARK, *workers, "--record", "--resume", "test_it.py")
    long = ("--perfgate-gate", "--perfgate-budget", "4h", "--perfgate-control=none", "--shape=8/8")
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, "PYTHONPATH": str(tmp_path)}
    status, output = forked.session((*words, *long), tmp_path, environment)
    assert status == 0, output
    assert "1 passed" in output


def test_a_conftest_is_read_where_the_tests_are_and_not_where_a_value_points(
    tmp_path: Path,
) -> None:
    for folder, words in (("tests", "print('mine')"), ("local", "print('not mine')")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "conftest.py").write_text(words)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    words = (*BENCHMARK, "-s", "--collect-only", "--launcher", "local")
    _, output = forked.session(words, tmp_path, ONLY_NEEDED_PLUGINS)
    assert output.startswith("mine\n")
    assert "not mine" not in output
