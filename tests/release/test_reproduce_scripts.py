"""A reproduce script runs the recorded command line, word by word, and nothing else."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import releases
from refusals import refused

from perfgate.core.measurement import MeasuredBuild
from perfgate.release.check_result import CheckedTest
from perfgate.release.pack_contents import reproduce_scripts

SHOWS = """#!/usr/bin/env bash
printf '%s\\n' "$@"
env | grep -E '^(A_NAME|NCCL_|HF_|SLURM_|PERFGATE_X)' | sort
"""
HOSTILE = "a b $(touch owned) `touch owned` '\" \\ ;touch owned"


def checked(rerun: str) -> CheckedTest:
    one = releases.of_test(releases.checked(releases.run()))
    assert one.result is not None
    build = MeasuredBuild("llama.cpp", "1.3.0", "c0ffee\nrm -rf /", "image:1\x1b[2J")
    return replace(one, result=replace(one.result, rerun=rerun, build=build))


def made(rerun: str, environment: dict[str, str] | None = None) -> str:
    (script,) = reproduce_scripts([checked(rerun)], {"one": environment or {}}).values()
    return script


def ran(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script, with a program for pytest that shows what it is given."""
    (folder / "pytest").write_text(SHOWS)
    (folder / "pytest").chmod(0o755)
    variables["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return called("bash", "-s", script=script, cwd=folder, env=variables)


def called(*words: str, script: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=script, capture_output=True, text=True, check=False, timeout=60, **more
    )


def found_by_shellcheck(script: str) -> str:
    return called(str(Path(sys.executable).with_name("shellcheck")), "-", script=script).stdout


def test_it_runs_what_was_recorded(tmp_path: Path) -> None:
    script = made(
        "A_NAME='x y' PERFGATE_X=1 pytest 'perf_tests/test_a.py::test[small-c1]' --control=auto",
        {"NCCL_DEBUG": "INFO", "HF_HOME": HOSTILE, "SLURM_JOB_ID": "17", "PERFGATE_X": "2"},
    )
    assert ran(script, tmp_path).stdout.splitlines() == [
        "perf_tests/test_a.py::test[small-c1]",
        "--control=auto",
        "A_NAME=x y",
        f"HF_HOME={HOSTILE}",
        "NCCL_DEBUG=INFO",
        "PERFGATE_X=1",
    ]
    assert not (tmp_path / "owned").exists()
    assert "# build: llama.cpp 1.3.0, commit c0ffee\\nrm -rf /" in script
    assert "set -euo pipefail" in script
    assert not found_by_shellcheck(script)


def test_what_was_masked_is_asked_for(tmp_path: Path) -> None:
    script = made("HF_TOKEN='***' pytest a --api-key=*** ", {"HF_ENDPOINT": "https://***@hub"})
    assert not found_by_shellcheck(script)
    told = ran(script, tmp_path)
    assert told.returncode != 0
    assert "HF_ENDPOINT: its value was a secret" in told.stderr
    given = {"HF_TOKEN": "a", "HF_ENDPOINT": "b", "MASKED_2": "--api-key=c"}
    assert ran(script, tmp_path, **given).stdout.splitlines() == [
        *("a", "--api-key=c", "HF_ENDPOINT=b", "HF_TOKEN=a")
    ]


@pytest.mark.parametrize("rerun", ["rm -rf /", "pytest 'a", "A=1", "a-b=1 pytest"])
def test_what_is_no_command_line_of_the_suite_is_refused(rerun: str) -> None:
    refused(made, rerun, match="small-c1 in run one")
    assert not reproduce_scripts([checked(""), replace(checked("x"), result=None)], {})
