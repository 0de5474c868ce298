"""Hang dump: what the processes of a program were doing when it hung, or took too long.

State, place in the kernel and command line of each; then the Python stacks, where `py-spy` is
installed. `look.py` reads them, beside perfgate: /proc can block for ever on a process that is
stuck in the kernel. Environments are not written, and all that is written is redacted.
"""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfgate.core import raw_log
from perfgate.core.durable_files import disk_errors_named
from perfgate.core.program_query import Answer, ask_here
from perfgate.core.redaction import mask_arguments, redact
from perfgate.core.untrusted_files import opened_regular

LOOK = Path(__file__).with_name("look.py")
STACKS_S = 10.0  # all stack dumps together
LIMIT_S = 20.0  # states and stacks; a hung program must not make perfgate hang


def look_argv(*words: str) -> tuple[str, ...]:
    """The call of `look.py`, which a node must see under the same path as this machine."""
    return (sys.executable, "-I", "-S", str(LOOK), *words)


def evidence_argv(mark: str, pids: Iterable[int] = ()) -> tuple[str, ...]:
    """The call that prints what the processes, else those of the launch `mark`, are doing."""
    return look_argv("evidence", mark, f"{STACKS_S:g}", *map(str, pids))


def evidence_here(mark: str, pids: Iterable[int]) -> Answer:
    """What processes of this machine are doing, as far as it could be read in time."""
    return ask_here(evidence_argv(mark, pids), LIMIT_S)


def write_evidence(file: Path, why: str, answer: Answer) -> None:
    """Append what the processes are doing to `file`; nobody looks for it where its folder is gone.

    Args:
        file: the evidence file; earlier evidence in it is kept.
        why: one line that says why somebody will want to know, or where.
        answer: of the call of `evidence_argv`.

    Raises:
        RunError: the disk is full (class ``disk_full``).
        UntrustedFile: something else is in the file's place.
    """
    said: list[Any] = []
    for line in answer.stdout.splitlines():
        with suppress(ValueError):  # the last one, cut off
            said.append(json.loads(line))
    states = [_state(process) for process in said if isinstance(process, dict)]
    states += [] if answer.is_good else [f"no more: {answer.trouble}"]
    stacks = [line for line in said if isinstance(line, str)]
    lines = [why, "processes:", *(f"  {line}" for line in states or ["none is left"])]
    lines += ["stacks:", *(f"  {line}" for line in stacks)]
    with suppress(OSError), disk_errors_named(file):
        handle = opened_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, raw_log.PRIVATE)
        with os.fdopen(handle, "a", encoding="utf-8") as text:
            text.writelines(f"{redact(line)}\n" for line in lines)


def _state(process: dict[str, Any]) -> str:
    command = " ".join(mask_arguments(process["argv"])).replace("\n", "\\n")
    name, state, waits = process["name"], process["state"], process["waits"]
    return f"pid {process['pid']} {name} {state}, waits in {waits}: {command}"
