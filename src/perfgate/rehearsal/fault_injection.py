"""Fault injection: let the fault of the rehearsal happen to the program that it belongs to."""

import os
import signal
import sys
import time
from typing import NoReturn

from perfgate.rehearsal.fault_lines import engine_lines
from perfgate.rehearsal.playbook import Playbook


def befall_engine(play: Playbook, host: str = "", port: str = "") -> None:
    """End the program that holds the engine, if that is the fault; else nothing happens.

    Args:
        play: the play.
        host: where the server listens; empty: the program is no server.
        port: likewise. A program without a server meets with `request_too_long` here too.
    """
    name = play.struck("engine") or (None if port else play.struck("answers"))
    if name is None or name.startswith("cli_drift"):  # options see to that
        return
    sys.stdout.flush()
    if name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    print(engine_lines(name, play.numbers, host, port), end="", file=sys.stderr, flush=True)
    raise SystemExit(1)


def befall_client(play: Playbook) -> str | None:
    """Name of the fault that hits the measuring program; never returns when it is to hang."""
    name = play.struck("client")
    if name == "hang":
        fall_silent()
    return name


def fall_silent() -> NoReturn:
    """Neither end nor write anything, until somebody ends the program."""
    sys.stdout.flush()
    sys.stderr.flush()
    while True:
        time.sleep(3600)
