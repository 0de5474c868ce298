"""A mistyped `-m` of a session is told, with what was meant."""

import subprocess
import sys
from pathlib import Path

import forked
import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, XDIST, inherited

from perfgate.core.errors import InputError
from perfgate.suite.unknown_markers import lines

ROOT = Path(__file__).parents[2]
REGISTERED = ["slow: takes long", "skipif(condition, ..., *, reason=...): skip", "b200: needs B200"]
DECLARED = {"b200": "needs B200", "serving": "a server under load"}


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", []),
        ("b200 and not (slow or serving) or skipif", []),
        ("b20", ["-m: no marker b20 is known; did you mean b200?"]),
        (
            "zzzzzz or servin",
            [
                "-m: no marker servin is known; did you mean serving?",
                "-m: no marker zzzzzz is known; `pytest --markers` lists those that are",
            ],
        ),
        ("b20 and", []),
    ],
)
def test_unknown_markers_are_told(expression: str, told: list[str]) -> None:
    assert lines(expression, REGISTERED, lambda: DECLARED) == told


def test_the_suites_files_are_read_only_for_a_marker_that_pytest_does_not_know() -> None:
    def unread() -> dict[str, str]:
        raise AssertionError

    assert lines("slow and not b200", REGISTERED, unread) == []


def test_files_that_cannot_be_read_are_told_elsewhere() -> None:
    def wrong() -> dict[str, str]:
        raise InputError("wrong")

    assert lines("b20", REGISTERED, wrong) == []


def session(*options: str) -> subprocess.CompletedProcess[str]:
    return forked.run(
        [sys.executable, "-m", "pytest", *XDIST, *BENCHMARK, *options],
        cwd=ROOT,
        env={**inherited(), **ONLY_NEEDED_PLUGINS},
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "with workers"])
def test_a_strict_session_ends_before_it_collects(workers: tuple[str, ...], tmp_path: Path) -> None:
    done = session("-m", "b20", "--run-dir", str(tmp_path / "run"), *workers)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: -m: no marker b20 is known; did you mean b200?\n" in done.stderr
    assert "collected" not in done.stdout
    assert "INTERNALERROR" not in done.stdout
    assert not (tmp_path / "run" / "records.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "with workers"])
def test_any_other_session_is_told_once_at_its_end(workers: tuple[str, ...]) -> None:
    lenient = ("-o", "addopts=-p no:cacheprovider -p no:dash", "-o", "strict_markers=false")
    done = session("-m", "b20", *lenient, *workers)
    assert done.stdout.count("perfgate: -m: no marker b20 is known; did you mean b200?") == 1
    assert "INTERNALERROR" not in done.stdout


@pytest.mark.slow
def test_pytest_explains_the_markers() -> None:
    out = session("--markers").stdout
    assert "@pytest.mark.b200: needs B200 GPUs\n" in out
    assert "@pytest.mark.serving: a server under load\n" in out
