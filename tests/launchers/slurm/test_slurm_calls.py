"""Slurm's programs, asked: what they do not say, and by which error that is told.

Scripts play them; the real ones are asked in tests/slurm.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.core.errors import MissingProgram, RunError
from perfgate.launchers.slurm import calls as slurm_calls

Make = Callable[[str], Path]


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Puts a script of that name on PATH, which says nothing else; no Slurm is there."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(body: str) -> Path:
        script = tmp_path / "scontrol"
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        return script

    return make


def test_an_answer(scontrol: Make) -> None:
    scontrol("echo n1; echo n2; echo beware >&2")
    assert slurm_calls.node_names("n[1-2]") == ("n1", "n2")


def test_a_program_that_is_not_there(scontrol: Make) -> None:
    with pytest.raises(MissingProgram, match=r"^needs Slurm: no no-such-program on PATH$"):
        slurm_calls.call(("no-such-program",))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo not told; echo Invalid node >&2; exit 1", "Invalid node"),
        ("echo told; exit 1", "told"),
        ("exit 7", "exit status 7"),
    ],
)
def test_a_failure_is_told_in_its_own_words(scontrol: Make, body: str, said: str) -> None:
    scontrol(body)
    with pytest.raises(RunError) as caught:
        slurm_calls.call(("scontrol",))
    assert caught.value.failure == "slurm_unreachable"
    assert caught.value.message == f"scontrol failed: {said}"


def test_no_answer_in_time(scontrol: Make) -> None:
    scontrol("exec /bin/sleep 60")
    with pytest.raises(RunError) as caught:
        slurm_calls.call(("scontrol",), 0.6)
    assert caught.value.message == "scontrol failed: no answer in 1 s"


def test_a_program_that_cannot_be_started(scontrol: Make) -> None:
    scontrol("").chmod(0o644)
    with pytest.raises(RunError, match=r"slurm_unreachable: scontrol failed: .*Permission denied"):
        slurm_calls.call(("scontrol",))


def test_an_unknown_job_without_accounting_is_forgotten(scontrol: Make) -> None:
    scontrol("echo slurm_load_jobs error: Invalid job id specified >&2; exit 1")
    assert slurm_calls.job_facts("12").state == "FORGOTTEN"
