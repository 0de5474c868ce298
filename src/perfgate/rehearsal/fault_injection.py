"""Fault injection: let the fault of the rehearsal happen to the program that it belongs to."""

import os
import signal
import sys
import time
from typing import NoReturn

from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.playbook import Playbook


def inject_engine_fault(playbook: Playbook, host: str = "", port: str = "") -> None:
    """End the program that holds the engine, if that is the fault; else nothing happens.

    Args:
        playbook: of this program.
        host: where the server listens; empty: the program is no server.
        port: likewise. A program without a server meets with `request_too_long` here too.
    """
    name = playbook.fault_at("engine") or (None if port else playbook.fault_at("answers"))
    if name is None or name.startswith("cli_drift"):  # options see to that
        return
    sys.stdout.flush()
    if name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    written = FAULTS[name].written(playbook.numbers, host, port, playbook.engine)
    print(written, end="", file=sys.stderr, flush=True)
    raise SystemExit(1)


def inject_client_fault(playbook: Playbook) -> str | None:
    """Name of the fault that hits the measuring program; never returns when it is to hang."""
    name = playbook.fault_at("client")
    if name == "hang":
        hang()
    return name


def completed(asked: int, fault: str | None) -> int:
    """How many of the requests asked are completed: with fault ``partial`` not all."""
    return asked - max(1, asked // 20) if fault == "partial" else asked


def halved(content: str, fault: str | None) -> str:
    """What a program writes; with fault ``truncated`` only its first half."""
    return content[: len(content) // 2] if fault == "truncated" else content


def hang() -> NoReturn:
    """Neither end nor write anything, until somebody ends the program."""
    sys.stdout.flush()
    sys.stderr.flush()
    while True:
        time.sleep(3600)
