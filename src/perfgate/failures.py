"""Failure classes: what kind of failure a run had, and the next step for a person."""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """One class of failure: its name, what it means, what to do next, the lines that show it."""

    name: str
    meaning: str
    next_step: str
    signatures: tuple[str, ...] = ()


FAILURES: dict[str, Failure] = {
    failure.name: failure
    for failure in [
        Failure(
            "port_in_use",
            "another program listens on the server's port",
            "stop that program, or let perfgate choose a free port",
            (r"address already in use", r"couldn't bind", r"Failed to bind socket"),
        ),
        Failure(
            "model_file",
            "the model's file is missing or damaged",
            "install it again: remove the package and run `make setup-local`",
            (
                r"failed to load model",
                r"error loading model",
                r"tensor .* data is not within the file bounds",
                r"invalid magic",
            ),
        ),
        Failure(
            "oom",
            "memory ran out",
            "lower the KV cache fraction, max batch size or max num tokens; or use more GPUs",
            (
                r"torch\.OutOfMemoryError",
                r"CUDA out of memory",
                r"CUDA error: out of memory",
                r"insufficient GPU memory",
                r"std::bad_alloc",
                r"^MemoryError",
            ),
        ),
        Failure(
            "config_error",
            "what was asked cannot be run as it stands",
            "mend the scenario or the option that the message names",
        ),
        Failure(
            "cli_drift",
            "the installed program does not know an option",
            "check the program's version against the scenario's",
            (r"Error: No such option", r"error: unrecognized arguments"),
        ),
        Failure(
            "start_timeout",
            "the server was not ready in time",
            "raise limits.start_s, or look at the server's log for what it waited for",
        ),
        Failure(
            "server_died",
            "the server ended by itself",
            "look at the server's last log lines",
        ),
        Failure(
            "killed",
            "a program was killed by a signal that perfgate did not send",
            "look for the kernel's out-of-memory killer or an operator",
        ),
        Failure("hang", "a program made no progress", "see the evidence file in the test's folder"),
        Failure(
            "total_timeout",
            "a program ran longer than allowed",
            "raise limits.total_s, or make the load smaller",
        ),
        Failure(
            "disk_full",
            "the disk of the run folder is full",
            "free space, or choose another folder with --run-dir",
            (r"No space left on device",),
        ),
        Failure(
            "incomplete",
            "not everything that was asked was done",
            "look at the client's log for the failed requests",
        ),
        Failure(
            "no_metrics",
            "the program left no usable result",
            "look at the program's log",
        ),
        Failure(
            "truncated_output",
            "a result file ends in the middle",
            "look for a full disk or a killed program, then run again",
        ),
        Failure(
            "prefix_cache_hit",
            "prompts were served from the prefix cache",
            "switch the cache off or give every sweep point its own seed",
        ),
        Failure(
            "client_failed",
            "the load client or evaluator ended with an error",
            "look at the program's last log lines",
        ),
        Failure("unknown", "nothing known matches", "look at the program's log"),
    ]
}


def classify(lines: Iterable[str], otherwise: str = "unknown") -> tuple[str, tuple[str, ...]]:
    """The class that the first telling line shows, and that line as evidence.

    The first cause wins: what follows it in a log is most often its consequence.

    Args:
        lines: the program's output, in order.
        otherwise: the class when no line tells.
    """
    patterns = [
        (failure.name, re.compile(pattern, re.IGNORECASE))
        for failure in FAILURES.values()
        for pattern in failure.signatures
    ]
    for line in lines:
        for name, pattern in patterns:
            if pattern.search(line):
                return name, (line.strip()[:300],)
    return otherwise, ()
