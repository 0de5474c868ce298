"""What a finished program left in its folder: logs, JSON files, and why there are no results."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def decoded(content: bytes, name: str, evidence: tuple[str, ...] = ()) -> Any:
    """A JSON document that a program wrote.

    Args:
        content: the document.
        name: its file, for people.
        evidence: what else to show where it is cut.

    Raises:
        RunError: ``truncated_output``, it is not whole.
    """
    try:
        return json.loads(content)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        problem = f"{name} is not complete JSON: {error}"
        raise RunError("truncated_output", problem, evidence=evidence) from error
