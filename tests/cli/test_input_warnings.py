"""Input warnings: a wrong variable or release is told on standard error, and the rest goes on."""

import json
from pathlib import Path

import pytest
from tables import each

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
SCENARIO = "b200-r1-fp4-fp16kv-max-throughput"
RENDERED = [["scenarios", "command"], ["scenarios", "command", "--launcher", "slurm"], ["plan"]]


def test_an_unknown_variable_is_told_once_and_not_among_the_output(
    two_scenarios: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFGATE_MODLES", "/models")
    assert main(["scenarios", "list", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert err == (
        "perfgate: warning: PERFGATE_MODLES: perfgate has no such variable; "
        "did you mean PERFGATE_MODELS?\n"
    )


@each("words", RENDERED)
def test_a_release_that_no_table_covers_is_told(words: list[str], capsys: Capture) -> None:
    assert main([*words, SCENARIO, "--engine-version", "99"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("perfgate: warning: no table of releases covers TensorRT-LLM 99: ")
    assert main([*words, SCENARIO, "--engine-version", "1.3.0"]) == 0
    assert capsys.readouterr().err == ""


@each("words", RENDERED)
def test_what_is_no_release_is_wrong_usage(words: list[str], capsys: Capture) -> None:
    assert main([*words, SCENARIO, "--engine-version", "zzz"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "not a version of TensorRT-LLM" in err
    assert "--engine-commit" in err
