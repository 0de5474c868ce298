"""The rerun line: everything that shaped a test's numbers, as a shell takes it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from checkouts import ACCURACY, PLUGINS, Suite
from tables import each

from perfgate.suite.rerun import shaping_options

TEST = "test_accuracy.py::test_accuracy[standin-serve-sums]"
SHAPED = (
    *("--engine-version=9.9", "--engine-commit=abc123"),
    *("--scenarios=scenarios", "--self-reference=stored"),
    *("--inject=engine.settings.cpu_threads=1", "--inject=limits.start_s=21"),
)
AB = ["A=this", "B=engine.settings.cpu_threads=8"]


@each(
    ("given", "repeated"),
    [
        ({"launcher": "local", "rehearse": False, "inject": []}, []),
        ({"gate": True, "run_dir": Path("r"), "resume": Path("r"), "budget": "4h"}, []),
        ({"launcher": "slurm", "rehearse": True}, ["--launcher=slurm", "--rehearse"]),
        ({"rehearse_fault": "slow:8%"}, ["--rehearse-fault=slow:8%"]),
        ({"shape": ["1024/2048", "8/8"]}, ["--shape=1024/2048", "--shape=8/8"]),
        ({"engine_repo": Path("clones of mine")}, ["--engine-repo=clones of mine"]),
        ({"ab": AB}, ["--ab", *AB]),
    ],
)
def test_all_that_shapes_a_number_and_was_given_is_repeated(
    given: dict[str, Any], repeated: list[str]
) -> None:
    defaults = {"launcher": "local", "self_reference": "auto", "inject": [], "shape": []}
    options = {f"--{name.replace('_', '-')}": value for name, value in (defaults | given).items()}
    assert sorted(shaping_options(options.get, str)) == sorted(repeated)


def test_a_name_that_another_plugin_has_is_repeated_by_its_long_name() -> None:
    taken = {"--ab": "--perfgate-ab", "--shape": "--perfgate-shape"}
    options = {"--ab": AB, "--shape": ["8/8"], "--rehearse": True, "--launcher": "local"}
    options |= {"--self-reference": "auto", "--control": "auto"}
    words = shaping_options(options.get, lambda name: taken.get(name, name))
    assert words == ["--perfgate-ab", *AB, "--perfgate-shape=8/8", "--rehearse"]


@pytest.mark.slow
def test_the_printed_line_selects_the_same_test_with_the_same_options(suite: Suite) -> None:
    secret = {"PERFGATE_PROGRAM_SECRET_TOKEN": "do-not-tell"}  # pragma: allowlist secret
    given = {"PERFGATE_MODELS": "/models of mine", "CI": "true", **secret}
    nothing = ("--benchmark-json", "benchmark.json")
    done = suite.run(ACCURACY, *SHAPED, *nothing, fault="no-result", **given)
    assert done.status == 11, done.output
    # Nothing was measured: the file is there, and says so.
    assert json.loads((suite.folder / "benchmark.json").read_text())["benchmarks"] == []
    (line,) = [one for one in done.output.splitlines() if one.startswith("rerun: ")]
    # In CI pytest repeats whole messages in its short summary, and a table of numbers is long.
    short = done.output.partition("short test summary info")[2]
    assert f"ERROR perf_tests/{TEST}" in short
    assert "rerun: " not in short
    assert "do-not-tell" not in done.output
    words = shlex.split(line.removeprefix("rerun: "))
    start = words.index("pytest")
    variables = dict(word.split("=", 1) for word in words[:start])
    assert variables["PERFGATE_MODELS"] == "/models of mine"
    assert variables["PERFGATE_ROOT"] == str(suite.folder)
    assert variables["PERFGATE_PROGRAM_SECRET_TOKEN"] == "***"
    assert sorted(words[start + 2 :]) == sorted(SHAPED)
    assert "PERFGATE_SCENARIOS" not in variables  # the option says it
    bare = {name: value for name, value in suite.environment.items() if name not in variables}
    again = forked.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *words[start + 1 :], "--collect-only", "-q"],
        cwd=suite.folder,
        env={**bare, **variables},
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert [one for one in again.stdout.splitlines() if "::" in one] == [f"perf_tests/{TEST}"]


@pytest.mark.slow
def test_from_another_folder_the_line_names_the_test_from_there(suite: Suite) -> None:
    done = forked.run(
        suite.command("test_accuracy.py"),
        cwd=suite.folder / "perf_tests",
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": "no-result"},
    )
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("rerun: ")]
    words = shlex.split(line)
    assert (done.returncode, words[words.index("pytest") + 1]) == (11, TEST)
