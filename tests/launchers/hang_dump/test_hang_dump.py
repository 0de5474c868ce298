"""Evidence: what is kept of a program that hangs, and that keeping it hinders nothing."""

import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from witnesses import eventually

from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.launchers.hang_dump import dump
from perfgate.launchers.hang_dump import machine as evidence_machine
from perfgate.launchers.hang_dump import processes as evidence_processes
from perfgate.launchers.hang_dump.dump import within
from perfgate.launchers.local.job import LocalJob
from perfgate.launchers.local.launcher import LocalLauncher

SERVER = """
import os, socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
guests = [socket.create_connection(server.getsockname()) for _ in range(3)]
hosts = [server.accept() for _ in guests]
for _ in range(4):
    threading.Thread(target=threading.Event().wait).start()
print("api_key=said-aloud", "or", os.environ["HF_TOKEN"], "on", server.getsockname()[1], flush=True)
print("worried", file=sys.stderr, flush=True)
threading.Event().wait()
"""
TITLES = [
    "processes:",
    "end of server.out:",
    "end of server.err:",
    "sockets:",
    "threads, as the kernel sees them:",
    "memory and disk:",
    "kernel messages:",
    "stacks:",
    "GPUs:",
]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts shell scripts, and nothing else, where py-spy and nvidia-smi are looked for."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "executable", shutil.which("python3", path=os.defpath) or "")

    def write(name: str, script: str) -> None:
        tool = tmp_path / "bin" / name
        tool.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
        tool.chmod(0o755)

    return write


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalJob]:
    """A server with guests, threads and secrets, which hangs."""
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    python = str(psutil.Process().exe())
    command = Command((python, "-c", SERVER, "--api-key", "said-too"))
    with LocalLauncher(0.5).start(command, tmp_path / "run", "server") as job:
        eventually(lambda: "worried" in job.stderr.read_text())
        yield job


def test_everything_that_can_be_seen_is_kept_and_the_program_goes_on(server, tools):
    tools("py-spy", 'echo "Process $3: python --api-key said-too"; echo "Python v3.11.7 (python)"')
    tools("nvidia-smi", 'echo "GPU of $1"')
    server.keep_evidence("a client hangs")
    text = server.evidence.read_text()
    assert re.match(r"....-..-..T..:..:..[+-]..:.. a client hangs\n", text)
    assert [line for line in text.splitlines() if line in TITLES] == TITLES
    port = server.stdout.read_text().split()[-1]
    assert f"pid {server.pid} sleeping, cpu " in text
    for seen in (
        f"pid {server.pid}: 1 LISTEN 127.0.0.1:{port}",
        f"pid {server.pid}: 3 ESTABLISHED 127.0.0.1:{port} from 127.0.0.1",
        f"pid {server.pid}: 3 ESTABLISHED to 127.0.0.1:{port}",
        "  worried",
        "  Python v3.11.7 (python)",
        "  GPU of --query-compute-apps=gpu_uuid,pid,process_name,used_memory",
        "  GPU of -q",
    ):
        assert seen in text
    assert re.search(rf"pid {server.pid}: 5 S \S+ python", text)
    assert server.poll() is None


def test_no_secret_is_in_it(server, tools):
    tools("py-spy", 'echo "Process $3: python --api-key said-too"; echo "Python v3.11.7 (python)"')
    server.keep_evidence("a client hangs")
    text = server.evidence.read_text()
    assert "api_key=***" in text
    assert "--api-key ***" in text
    for secret in ("said-aloud", "said-too", "hf_0123456789"):
        assert secret not in text


def test_it_may_be_asked_of_a_program_that_has_ended_and_adds_to_what_there_is(server, tools):
    server.keep_evidence("once")
    server.stop()
    server.keep_evidence("and again")
    first, again = server.evidence.read_text().split("and again\n")
    assert "once" in first
    assert "processes:\n  none is left\n" in again
    assert "  worried" in again


def test_without_its_folder_there_is_nothing_to_keep(server, tools):
    shutil.rmtree(server.folder)
    server.keep_evidence("nobody will see it")
    assert not server.folder.exists()


def test_a_full_disk_is_told_after_the_program_has_ended(server, tools, monkeypatch):
    monkeypatch.setattr(dump, "opened_regular", lambda *_: os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(RunError) as error:
        server.give_up("silence", "it wrote nothing")
    assert error.value.failure == "disk_full"
    assert server.poll() is not None


def test_programs_that_hang_are_given_up_and_told(server, tools, monkeypatch):
    monkeypatch.setattr(evidence_processes, "STACKS_S", 0.2)
    monkeypatch.setattr(evidence_machine, "GPUS_S", 0.2)
    tools("py-spy", "sleep 600")
    tools("nvidia-smi", "sleep 600")
    server.keep_evidence("a client hangs")
    text = server.evidence.read_text()
    assert "/py-spy in 0 s" in text
    assert text.count("no answer from nvidia-smi in 0 s") == 2
    assert server.poll() is None


def test_a_part_that_hangs_or_breaks_leaves_what_it_had():
    never = threading.Event()

    def hang() -> Iterator[str]:
        yield "a line"
        never.wait()

    def fail() -> Iterator[str]:
        yield "a line"
        raise ZeroDivisionError("by zero")

    try:
        assert within(0.1, hang) == ["a line", "no more: 0 s are over"]
        assert within(60, fail) == ["a line", "no more: ZeroDivisionError: by zero"]
    finally:
        never.set()


def test_of_the_kernel_s_messages_only_those_of_gpus_memory_and_hangs_are_kept(monkeypatch):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, ExitStack() as ends:
        for record in (
            b"6,1,1000000,-;Linux version\n SUBSYSTEM=x\n",
            b"3,2,2500000,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n D=y\n",
            b"4,3,3000000,-;bloom filters\n",
            b"3,4,4000000,-;Out of memory: Killed process 7 (python3)\n",
            b"3,5,5000000,-;INFO: task python:7 blocked for more than 120 seconds.\n",
        ):
            theirs.send(record)
        copy = os.dup(ours.fileno())
        os.set_blocking(copy, False)
        monkeypatch.setattr(os, "open", lambda *_: copy)
        ends.callback(monkeypatch.undo)
        *messages, now = evidence_machine.kernel_messages()
    assert messages == [
        "[2.500000] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.",
        "[4.000000] Out of memory: Killed process 7 (python3)",
        "[5.000000] INFO: task python:7 blocked for more than 120 seconds.",
    ]
    assert now.endswith("is now")


def test_kernel_messages_that_may_not_be_read_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr(evidence_machine, "KMSG", tmp_path / "kmsg")
    (told,) = evidence_machine.kernel_messages()
    assert told == f"cannot be read: {tmp_path}/kmsg: No such file or directory"


def test_of_very_many_threads_some_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(evidence_processes, "MOST_THREADS", 0)
    me = psutil.Process()
    (told,) = evidence_processes.threads([me])
    assert re.fullmatch(rf"pid {me.pid}: \d+ more not looked at", told)
