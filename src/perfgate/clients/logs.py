"""What a finished program left in its folder: logs, JSON files, and why there are no results."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfgate.clients.report_lines import Line
from perfgate.clients.report_log import report_lines
from perfgate.core import json_text
from perfgate.core.errors import RunError
from perfgate.core.failures import classify_logs
from perfgate.core.untrusted_files import FileTooLarge, open_regular, read_regular


def logged(folder: Path, name: str, words: Sequence[str]) -> Iterator[tuple[Line, ...]]:
    """The lines of what a program printed that a report can stand in, standard output first.

    Args:
        folder: where it ran.
        name: what its logs are called, e.g. ``benchmark``.
        words: what a report has, see `report_lines`.
    """
    for path in (folder / f"{name}.out", folder / f"{name}.err"):
        with suppress(FileNotFoundError), open_regular(path) as log:
            yield report_lines(log, words)


def left(path: Path, evidence: tuple[str, ...] = ()) -> Any:
    """The JSON document in a file that a program left.

    Args:
        path: the file, in the folder where the program ran.
        evidence: what else to show where it is cut.

    Raises:
        RunError: see `decoded`.
        UntrustedFile: it is no regular file.
    """
    try:
        content = read_regular(path, json_text.LARGEST_DOCUMENT)
    except FileTooLarge as error:
        raise RunError("no_metrics", str(error)) from error
    return decoded(content, path.name, evidence)


def no_report(program: str, folder: Path, name: str) -> RunError:
    """The error of a program that ended without a report, with the cause that its logs show.

    An exit status of 0 is no excuse: up to 1.0 TensorRT-LLM swallows an interrupt.
    """
    logs = (folder / f"{name}.out", folder / f"{name}.err")
    failure, evidence, hint = classify_logs(logs, otherwise="no_metrics")
    return RunError(failure, f"{program} left no report", evidence=evidence, hint=hint)


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
