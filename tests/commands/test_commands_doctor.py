import json
from dataclasses import asdict
from pathlib import Path

import pytest
from building import MACHINE, machine

from perfgate.cli import main
from perfgate.errors import MissingProgram
from perfgate.tools import Tools

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def everything_but_gpus(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs; every program there."""
    monkeypatch.setattr("perfgate.hardware.detect", lambda: MACHINE)
    monkeypatch.setattr(Tools, "require", lambda self: None)


def test_what_can_run_and_why_not_the_rest(capsys: Capture) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "machine: node7, 72 cores of Grace",
        "memory: 16.0 GiB; GPUs: none (no nvidia-smi on PATH)",
        "",
    ]
    assert [line.split(None, 1) for line in lines[3:]] == [
        ["scenario", "can run here"],
        ["h200-serve", "no: needs 1×H200, found none (no nvidia-smi on PATH)"],
        ["local-smollm2-serve", "yes"],
    ]


def test_as_json(capsys: Capture) -> None:
    assert main(["doctor", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "machine": json.loads(json.dumps(asdict(MACHINE))),
        "cannot_run": {
            "h200-serve": "needs 1×H200, found none (no nvidia-smi on PATH)",
            "local-smollm2-serve": None,
        },
    }


def test_gpus_are_named(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("perfgate.hardware.detect", lambda: machine("NVIDIA H200", "NVIDIA H200"))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "GPUs: NVIDIA H200, NVIDIA H200" in out
    assert out.count("  yes\n") == 2


def test_a_missing_program_is_a_reason_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def missing(self: Tools) -> None:
        raise MissingProgram("aiperf is not installed:\n  it comes with `make setup-local`")

    monkeypatch.setattr(Tools, "require", missing)
    assert main(["doctor", "--scenario", "local-smollm2-serve"]) == 1
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith("no: aiperf is not installed: it comes with `make setup-local`")
    )


@pytest.mark.parametrize(("name", "status"), [("local-smollm2-serve", 0), ("h200-serve", 1)])
def test_one_scenario_answers_with_the_status(name: str, status: int, capsys: Capture) -> None:
    assert main(["doctor", "--scenario", name, "--format", "json"]) == status
    assert list(json.loads(capsys.readouterr().out)["cannot_run"]) == [name]


def test_an_unknown_scenario_is_an_error(capsys: Capture) -> None:
    assert main(["doctor", "--scenario", "h200-serv"]) == 2
    assert "did you mean h200-serve?" in capsys.readouterr().err
