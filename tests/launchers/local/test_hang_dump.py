"""Hang dump: what is kept of a program that hangs, and that keeping it hinders nothing."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import psutil
import pytest
from witnesses import eventually

from perfgate.core.errors import RunError
from perfgate.launchers.local import job as local_job

SERVER = "import threading; print('up', flush=True); threading.Event().wait()"
STACKS = 'echo "Process $3: python --api-key said-too"; echo "Python v3.11.7 (python)"'


@pytest.fixture
def server(start, tmp_path, monkeypatch):
    """A server with secrets, which hangs, where no py-spy is."""
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    python = str(psutil.Process().exe())
    job = start(python, "-c", SERVER, "--api-key", "said-too", "hf_0123456789", name="server")
    eventually(lambda: "up" in job.stdout.read_text())
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "executable", shutil.which("python3", path=os.defpath) or "")
    return job


def write_py_spy(tmp_path: Path, script: str) -> None:
    tool = tmp_path / "bin" / "py-spy"
    tool.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
    tool.chmod(0o755)


def test_states_and_stacks_are_kept_without_secrets_and_the_program_goes_on(server, tmp_path):
    write_py_spy(tmp_path, STACKS)
    server.keep_evidence("a client hangs")
    text = server.evidence.read_text()
    assert re.match(r"....-..-..T..:..:..[+-]..:.. a client hangs\nprocesses:\n", text)
    assert re.search(rf"  pid {server.pid} python\S* sleeping, waits in \S+: ", text)
    assert f"stacks:\n  pid {server.pid}, by py-spy dump:\n  Python v3.11.7 (python)\n" in text
    assert server.poll() is None
    assert "--api-key *** ***" in text
    for secret in ("said-too", "hf_0123456789"):
        assert secret not in text


def test_without_py_spy_the_states_remain(server):
    assert server.give_up("silence", "it wrote nothing").reason == "silence"
    text = server.evidence.read_text()
    assert f"  pid {server.pid} " in text
    assert "stacks:\n  no py-spy beside " in text


def test_evidence_of_a_program_that_has_ended_is_added_to_what_there_is(server):
    server.keep_evidence("once")
    server.stop()
    server.keep_evidence("and again")
    first, again = server.evidence.read_text().split("and again\n")
    assert "once" in first
    assert "processes:\n  none is left\n" in again
    shutil.rmtree(server.folder)
    server.keep_evidence("nobody will see it")
    assert not server.folder.exists()


def test_a_full_disk_is_reported_after_the_program_has_ended(server, monkeypatch):
    monkeypatch.setattr(local_job, "opened_regular", lambda *_: os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(RunError) as error:
        server.give_up("silence", "it wrote nothing")
    assert error.value.failure == "disk_full"
    assert server.poll() is not None


def test_a_py_spy_that_hangs_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(local_job, "STACKS_S", 0.2)
    write_py_spy(tmp_path, "exec sleep 600")
    server.keep_evidence("a client hangs")
    assert "/py-spy in 0 s" in server.evidence.read_text()
    assert server.poll() is None


def test_a_process_that_cannot_be_read_is_given_up(server, tmp_path, monkeypatch):
    stuck = tmp_path / "stuck.py"
    state = {"pid": "7", "name": "x", "state": "disk sleep", "waits": "nvidia_ioctl", "argv": []}
    stuck.write_text(f"import time; print({json.dumps(state)!r}, flush=True); time.sleep(60)")
    monkeypatch.setattr(local_job, "LOOK", stuck)
    monkeypatch.setattr(local_job, "EVIDENCE_S", 0.5)
    server.keep_evidence("a client hangs")
    head = "processes:\n  pid 7 x disk sleep, waits in nvidia_ioctl: \n  no more: no answer from "
    assert head in server.evidence.read_text()
