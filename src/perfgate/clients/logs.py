"""The logs that a finished program left in its folder, and why it left no results."""

from collections.abc import Iterator
from pathlib import Path

from perfgate.core.errors import RunError
from perfgate.core.failures import classify


def logged(folder: Path, name: str) -> Iterator[str]:
    """What a program printed, standard output first.

    Args:
        folder: where it ran.
        name: what its logs are called, e.g. ``benchmark``.
    """
    for path in (folder / f"{name}.out", folder / f"{name}.err"):
        if path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")


def no_report(program: str, folder: Path, name: str) -> RunError:
    """The error of a program that ended without a report, with the cause that its logs show.

    An exit status of 0 is no excuse: up to 1.0 TensorRT-LLM swallows an interrupt.
    """
    lines = [line for log in logged(folder, name) for line in log.splitlines()]
    failure, evidence = classify(lines, otherwise="no_metrics")
    return RunError(failure, f"{program} left no report", evidence=evidence)
