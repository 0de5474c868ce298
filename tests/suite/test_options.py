"""The suite's options: known to pytest before any conftest, and what is wrong is told at once."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from checkouts import Suite, pytest_in, run_alone, says
from road_words import ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited
from tables import each

Words = tuple[str, ...]
LOCAL = ("-m", "local", "--collect-only", "-q")


def python(*words: str, **variables: str) -> str:
    """What a process of Python's own prints; its status must be 0."""
    environment = {**inherited(), **ONLY_NEEDED_PLUGINS, **variables}
    done = run_alone((sys.executable, *words), ROOT, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


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
    tmp_path: Path, elsewhere: Path, words: Words, scenario: str
) -> None:
    """Also where nothing of the development set can be imported."""
    for module in ("hypothesis", "matplotlib", "pytest_cov", "pytest_timeout"):
        (tmp_path / f"{module}.py").write_text("raise ModuleNotFoundError('not for strangers')\n")
    given = [word.replace("{}", str(elsewhere)) for word in words]
    status, output = pytest_in(ROOT, *LOCAL, *given, PYTHONPATH=str(tmp_path))
    assert status == 0, output
    assert f"{scenario}-smollm2-serve-c1" in output


def test_pytest_of_other_projects_loads_the_options_alone() -> None:
    code = (
        "import json, sys, pytest; before = set(sys.modules); import perfgate.suite.options\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = json.loads(python("-c", code))
    options = ["perfgate", "perfgate.suite", "perfgate.suite.options"]
    assert [name for name in loaded if name.startswith("perfgate")] == options
    assert not {"numpy", "scipy", "yaml", "rich"} & set(loaded)


def test_stand_ins_are_loaded_by_a_rehearsal_alone(tmp_path: Path) -> None:
    (tmp_path / "loaded.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print(*(name for name in sys.modules if name.startswith('perfgate.')))\n"
    )
    words = ("-m", "pytest", *BENCHMARK, *LOCAL, "-p", "loaded")
    loaded = python(*words, PYTHONPATH=str(tmp_path)).splitlines()[-1].split()
    assert "perfgate.suite.plugin" in loaded
    assert not any(name.startswith("perfgate.rehearsal") for name in loaded)


def test_the_command_pytest_benchmark_ends_without_a_traceback(tmp_path: Path) -> None:
    """In the checkout, whose settings make warnings errors."""
    program = str(Path(sys.executable).with_name("pytest-benchmark"))
    assert "Traceback" not in python(program, "--storage", tmp_path.as_uri(), "compare")


def test_a_session_goes_on_ignoring_the_signals_that_its_caller_ignores(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["perfgate.suite.plugin"]\n')
    lines = "import signal\ndef test_it():\n"
    lines += "    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN\n"
    (tmp_path / "test_signals.py").write_text(lines)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        python("-m", "pytest", *BENCHMARK, f"--rootdir={tmp_path}", str(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)


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


@pytest.mark.parametrize(
    ("first", "workers"),
    [(True, ()), (False, ("-n", "1"))],
    ids=["plugin-before", "conftest-after-with-workers"],
)
def test_a_project_keeps_its_options(tmp_path: Path, first: bool, workers: Words) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS if first else "")
    conftest = 'pytest_plugins = ["perfgate.suite.plugin"]\n' + ("" if first else THEIRS)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_it.py").write_text(CHECKED)
    words = ("-p", "theirs", *workers, "--record", "--resume", "test_it.py")
    long = ("--perfgate-gate", "--perfgate-budget", "4h", "--perfgate-control=none", "--shape=8/8")
    status, output = pytest_in(tmp_path, *words, *long, PYTHONPATH=str(tmp_path))
    assert (status, "1 passed" in output) == (0, True), output


def test_a_conftest_is_read_where_tests_are_and_not_where_a_value_points(tmp_path: Path) -> None:
    for folder, words in (("tests", "print('mine')"), ("local", "print('not mine')")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "conftest.py").write_text(words)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    _, output = pytest_in(tmp_path, "-s", "--collect-only", "--launcher", "local")
    assert output.startswith("mine\n")
    assert "not mine" not in output


# Which scenarios and baselines a session has.

# Ends a session with the folders that it looks in.
PROBE = """\
import pytest
pytest_plugins = ["perfgate.suite.plugin"]
def pytest_collection_finish(session):
    from perfgate.core.files.paths import baselines_folder, scenario_folders
    print("\\nFOUND", baselines_folder(), *scenario_folders())
"""
SETTINGS = """\
[tool.pytest.ini_options]
perfgate_scenarios = ["packaged", "own"]
perfgate_baselines = "accepted"
"""
PACKAGED = str(ROOT / "scenarios")
VARIABLES = {"PERFGATE_SCENARIOS": f"x{os.pathsep}packaged", "PERFGATE_BASELINES": "y"}
GIVEN = ("--scenarios", "packaged", "--scenarios", "z", "--baselines", "b")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(PROBE)
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    for folder in ("z", "below"):
        (tmp_path / folder).mkdir()
    (tmp_path / "z" / "one.yaml").touch()
    return tmp_path


@each(
    ("options", "environment", "expected"),
    [
        ((), {}, ("accepted", PACKAGED, "own")),
        ((), VARIABLES, ("y", "x", PACKAGED)),
        (GIVEN, VARIABLES, ("b", PACKAGED, "z")),
        (("-o", "perfgate_scenarios=packaged else"), {}, ("accepted", PACKAGED, "else")),
    ],
)
def test_an_option_wins_over_the_environment_and_that_over_the_settings(
    gate: Path, options: Words, environment: dict[str, str], expected: Words
) -> None:
    status, output = pytest_in(gate, "-q", "-s", *options, **environment)
    assert status == 0, output
    (line,) = [line for line in output.splitlines() if line.startswith("FOUND")]
    assert line.split()[1:] == [str(gate / one) for one in expected]


@pytest.mark.parametrize("settings", ["pyproject.toml", "pytest.ini", ""])
def test_a_conftest_above_that_could_be_anothers_is_not_run(gate: Path, settings: str) -> None:
    """Only of the suite's sessions: those of other tests are left alone."""
    ran = gate / "below" / "ran"
    plugin = "pytest_plugins = ['perfgate.suite.plugin']\n" if settings else ""
    (gate / "conftest.py").write_text(f"open('ran', 'w')\n{plugin}")
    if settings == "pytest.ini":
        (gate / settings).write_text("[pytest]\nperfgate_scenarios = own\n")
    if not settings:
        (gate / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    gate.chmod(0o777)
    status, output = pytest_in(gate / "below", "-q", "-s")
    assert (status, ran.exists()) == ((4, False) if settings else (5, True)), output
    if settings:
        told = f"ERROR: {gate}: could be another user's, and was found, not named"
        says(output, told, f"export PERFGATE_ROOT={gate}")
        words = ("-q", "--collect-only")
        assert pytest_in(gate / "below", *words, PERFGATE_ROOT=str(gate))[0] == 5
        assert ran.exists()


WARNING = "perfgate: warning: PERFGATE_MODLES: perfgate has no such variable"
WRONG = ("--inject", "engine.settings.cpu_thread=1")


@pytest.mark.slow
@each(
    ("options", "told"),
    [
        (WRONG, "no such setting"),
        (("--inject", "nonsense"), "KEY=VALUE"),
        (("--launcher", "slrum"), "unknown launcher"),
        (("--engine-repo", "perf_tests"), "perf_tests: not a git clone"),
        (("--budget", "tomorrow"), "--budget: not a duration"),
        (("--record", "--rehearse-fault=oom"), "found: --rehearse-fault beside it"),
        (("--waivers", "missing.yaml"), "--waivers: no such file"),
        (("--shard", "4/3"), "--shard: no shard"),
        (("-m", "standin", "--shard", "2/2"), "the shard is empty"),
        (("-m", "standin", "--shard", "2/2", "-n", "1"), "the shard is empty"),
        (("PERFGATE_SITE=site",), "PERFGATE_SITE: no such file"),
        (("PERFGATE_SITE=pyproject.toml",), "pyproject.toml:2: broken YAML"),
        (("isl: 16", "isl: sixteen"), "standin.yaml:13"),
    ],
)
def test_wrong_input_is_wrong_usage(suite: Suite, options: Words, told: str) -> None:
    variables = dict(one.split("=") for one in options if one.startswith("PERFGATE_"))
    if told.startswith("standin.yaml"):
        suite.edit(options)  # the last row, as it spoils the checkout
    words = [one for one in options if "PERFGATE_" not in one and "isl" not in one]
    done = suite.run(*words, **variables)
    done.require(4)
    assert done.output.count(told) == 1, done.output
    assert "INTERNALERROR" not in done.output
    assert (suite.starts, (done.folder / "records.jsonl").exists()) == (0, False)


def test_a_warning_is_a_line_and_never_an_error_and_what_is_no_release_is_wrong_usage() -> None:
    words = ["-m", "b200", "-k", "b200-r1-fp4-fp16kv-max-throughput", "--rehearse"]
    words += ["--collect-only", "-q", "-W", "error", "--engine-version"]
    variable = {"PERFGATE_MODLES": "/models"}
    status, output = pytest_in(ROOT, *words, "99", **variable)
    once = (WARNING, "no table of releases covers TensorRT-LLM 99")
    assert (status, [output.count(one) for one in once]) == (0, [1, 1]), output
    status, output = pytest_in(ROOT, *words, "zzz", **variable)
    assert (status, "not a version of TensorRT-LLM" in output) == (4, True), output
