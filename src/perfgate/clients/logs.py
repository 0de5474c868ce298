"""What a finished program left in its folder: logs, JSON files, and why there are no results."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfgate.core import json_text
from perfgate.core.errors import RunError
from perfgate.core.failures import classify_logs


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
    logs = (folder / f"{name}.out", folder / f"{name}.err")
    failure, evidence = classify_logs(logs, otherwise="no_metrics")
    return RunError(failure, f"{program} left no report", evidence=evidence)


def decoded(
    content: bytes,
    name: str,
    evidence: tuple[str, ...] = (),
    limit: int = json_text.LARGEST_DOCUMENT,
) -> Any:
    """A JSON document that a program wrote.

    Args:
        content: the document.
        name: its file, for people.
        evidence: what else to show where it is cut.
        limit: the most bytes.

    Raises:
        RunError: ``truncated_output``, it is not whole; ``no_metrics``, it is beyond a limit.
    """
    try:
        return json_text.parse(content, limit=limit)
    except json_text.JsonError as error:
        if not error.is_cut:
            raise RunError("no_metrics", f"{name} {error}", evidence=evidence) from error
        place = f" (line {error.line})" if error.line else ""
        problem = f"{name} is not complete JSON: {error.found}{place}"
        raise RunError("truncated_output", problem, evidence=evidence) from error
