"""The rerun line: everything that shaped a test's numbers, as a shell takes it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from test_road import PLUGINS, make_suite

from perfgate.suite.rerun import shaping_options

SHAPED = (
    *("--engine-version=9.9", "--engine-commit=abc123"),
    *("--scenarios=scenarios", "--self-reference=stored"),
    *("--inject=engine.settings.cpu_threads=1", "--inject=limits.start_s=21"),
)


def options(**given: Any) -> list[str]:
    defaults = {"--launcher": "local", "--self-reference": "auto"}
    lists = ("--inject", "--shape")

    def option(name: str) -> Any:
        known = given.get(name.removeprefix("--").replace("-", "_"))
        return known if known is not None else defaults.get(name, [] if name in lists else None)

    return shaping_options(option)


def test_only_what_was_given_is_repeated() -> None:
    assert options() == []
    assert options(launcher="local", rehearse=False, inject=[]) == []


def test_all_that_shapes_a_number_is_repeated() -> None:
    found = options(
        launcher="slurm",
        rehearse=True,
        rehearse_fault="slow:8%",
        shape=["1024/2048", "8/8"],
        engine_repo=Path("clones of mine"),
    )
    assert sorted(found) == [
        "--engine-repo=clones of mine",
        "--launcher=slurm",
        "--rehearse",
        "--rehearse-fault=slow:8%",
        "--shape=1024/2048",
        "--shape=8/8",
    ]


def test_both_builds_of_an_ab_are_repeated() -> None:
    words = ["A=this", "B=engine.settings.cpu_threads=8"]
    assert options(ab=words) == ["--ab", *words]


def test_what_shapes_no_number_is_left_out() -> None:
    assert options(gate=True, run_dir=Path("r"), resume=Path("r"), budget="4h") == []


@pytest.mark.slow
def test_the_printed_line_selects_the_same_test_with_the_same_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFGATE_MODELS", "/models of mine")
    monkeypatch.setenv("PERFGATE_PROGRAM_SECRET_TOKEN", "do-not-tell")
    suite = make_suite(tmp_path)
    nothing = ("--benchmark-json", "benchmark.json")
    done = suite.run("perf_tests/test_accuracy.py", *SHAPED, *nothing, fault="no-result")
    assert done.status == 11, done.output
    # Nothing was measured: the file is there, and says so.
    assert json.loads((suite.folder / "benchmark.json").read_text())["benchmarks"] == []
    (line,) = [one for one in done.output.splitlines() if one.startswith("rerun: ")]
    assert "do-not-tell" not in done.output
    words = shlex.split(line.removeprefix("rerun: "))
    start = words.index("pytest")
    variables = dict(word.split("=", 1) for word in words[:start])
    assert variables["PERFGATE_MODELS"] == "/models of mine"
    assert variables["PERFGATE_ROOT"] == str(suite.folder)
    assert variables["PERFGATE_PROGRAM_SECRET_TOKEN"] == "***"
    assert sorted(words[start + 2 :]) == sorted(SHAPED)
    assert "PERFGATE_SCENARIOS" not in variables  # the option says it
    assert "'/models of mine'" in line
    bare = {name: value for name, value in suite.environment.items() if name not in variables}
    again = forked.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *words[start + 1 :], "--collect-only", "-q"],
        cwd=suite.folder,
        env={**bare, **variables},
    )
    assert again.returncode == 0, again.stdout + again.stderr
    tests = [one for one in again.stdout.splitlines() if "::" in one]
    assert tests == ["perf_tests/test_accuracy.py::test_accuracy[standin-serve-sums]"]


@pytest.mark.slow
def test_from_another_folder_the_line_names_the_test_from_there(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    done = forked.run(
        suite.command("test_accuracy.py"),
        cwd=suite.folder / "perf_tests",
        env={**suite.environment, "PERFGATE_STANDIN_FAULT": "no-result"},
    )
    assert done.returncode == 11, done.stdout + done.stderr
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("rerun: ")]
    words = shlex.split(line)
    test = words[words.index("pytest") + 1]
    assert test == "test_accuracy.py::test_accuracy[standin-serve-sums]"
