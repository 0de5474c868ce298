"""A mistyped `-m` of a session is told, with what was meant."""

from pathlib import Path

import forked
import pytest
from checkouts import PLUGINS, ROOT
from sessions import ONLY_NEEDED_PLUGINS, inherited
from tables import each

from perfgate.core.errors import InputError
from perfgate.suite.selection import unknown_markers

REGISTERED = ["slow: takes long", "skipif(condition, ..., *, reason=...): skip", "b200: needs B200"]


@each(
    ("expression", "told"),
    [
        ("", []),
        ("b200 and not (slow or serving) or skipif", []),
        ("b20 and", []),
        ("b20", ["-m: no marker b20 is known; did you mean b200?"]),
        (
            "zzzzzz or servin",
            [
                "-m: no marker servin is known; did you mean serving?",
                "-m: no marker zzzzzz is known; `pytest --markers` lists those that are",
            ],
        ),
    ],
)
def test_unknown_markers_are_told(expression: str, told: list[str]) -> None:
    declared = {"b200": "needs B200", "serving": "a server under load"}
    assert unknown_markers(expression, REGISTERED, lambda: declared) == told


def test_files_that_cannot_be_read_are_told_elsewhere() -> None:
    def wrong() -> dict[str, str]:
        raise InputError("wrong")

    assert unknown_markers("b20", REGISTERED, wrong) == []


def session(*options: str) -> tuple[int, str]:
    environment = {**inherited(), **ONLY_NEEDED_PLUGINS}
    return forked.session([*PLUGINS, *options], ROOT, environment)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_strict_session_ends_before_it_collects(workers: tuple[str, ...], tmp_path: Path) -> None:
    status, output = session("-m", "b20", "--run-dir", str(tmp_path / "run"), *workers)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: -m: no marker b20 is known; did you mean b200?\n" in output
    assert "collected" not in output
    assert "INTERNALERROR" not in output
    assert not (tmp_path / "run" / "records.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_any_other_session_is_told_once_at_its_end(workers: tuple[str, ...]) -> None:
    lenient = ("-o", "addopts=-p no:cacheprovider -p no:dash", "-o", "strict_markers=false")
    _, output = session("-m", "b20", *lenient, *workers)
    assert output.count("perfgate: -m: no marker b20 is known; did you mean b200?") == 1
    assert "INTERNALERROR" not in output


@pytest.mark.slow
def test_pytest_explains_the_markers() -> None:
    _, output = session("--markers")
    assert "@pytest.mark.b200: needs B200 GPUs\n" in output
    assert "@pytest.mark.serving: a server under load\n" in output
