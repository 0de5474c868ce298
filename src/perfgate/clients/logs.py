"""What a finished program left in its folder: logs, JSON files, and why there are no results.

A log of a server run has gigabytes, a report in it a few kilobytes. A log is read in blocks, and a
block is only split into lines where one of the words stands that a report has, which each
report's parser names in its ``WORDS``. Lines are freed from what terminals, launchers and loggers
put around them; what they mean is the business of that parser.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from perfgate.core.errors import RunError
from perfgate.core.failures import classify_logs, own_words
from perfgate.core.files import json_text
from perfgate.core.files.untrusted_files import FileTooLarge, open_regular, read_regular
from perfgate.core.programs.raw_log import LONGEST_LINE
from perfgate.core.redaction import redact

BLOCK = 2**20  # bytes: no report is longer
MOST_BLOCKS = 32  # that are split into lines
MOST_LINES = 1_000_000
LARGEST_LOG = 2**34  # bytes; a sparse file may claim any size
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_SHOWN = 300  # characters of a line that are shown as evidence


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        number: its number, from 1 on.
        raw: as it stands in the file.
        text: what the program printed, without blanks at its ends.
    """

    number: int
    raw: str
    text: str

    @property
    def evidence(self) -> str:
        """The line as it is shown to people: redacted."""
        return redact(_ESCAPE.sub("", self.raw).strip())[:_SHOWN]

    def labelled(self) -> tuple[str, str] | None:
        """Label and value of ``label: value``; None for any other line."""
        label, colon, value = self.text.partition(":")
        return (label.rstrip(), value.strip()) if colon and label.strip() else None


def line_of(raw: str, number: int) -> Line:
    """One line; a progress bar that was written over counts as its last state."""
    text = _ESCAPE.sub("", raw).rstrip("\r\n").rpartition("\r")[2]
    text = own_words(text.strip())[0].strip()
    return Line(number, raw, raw if text == raw else text)


def require(
    is_so: object, failure: str, message: str, *evidence: str, hint: str | None = None
) -> None:
    """What a program left is as it must be; otherwise a `RunError` of these words."""
    if not is_so:
        raise RunError(failure, message, evidence=evidence, hint=hint)


def last_line(lines: tuple[Line, ...]) -> tuple[str, ...]:
    """The last line with something on it, as evidence of where a report stops."""
    return next(((line.evidence,) for line in reversed(lines) if line.evidence), ())


IsReport = Callable[[tuple[Line, ...]], bool]


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


def printed(
    program: str, folder: Path, name: str, words: Sequence[str], is_report: IsReport
) -> tuple[Line, ...]:
    """The lines of the first log that a report begins in; as `logged`.

    Raises:
        RunError: there is none; with the cause that the logs show.
    """
    for lines in logged(folder, name, words):
        if is_report(lines):
            return lines
    raise no_report(program, folder, name)


def left(path: Path, evidence: tuple[str, ...] = ()) -> Any:
    """The JSON document in a file that a program left.

    Args:
        path: the file, in the folder where the program ran.
        evidence: what else to show where it is cut.

    Raises:
        RunError, UntrustedFile: see `content_of` and `decoded`.
    """
    return decoded(content_of(path), path.name, evidence)


def content_of(path: Path) -> bytes:
    """What is in a file that a program left, a JSON document if all is well.

    Raises:
        RunError: ``no_metrics``, it is larger than any.
        UntrustedFile: it is no regular file.
    """
    try:
        return read_regular(path, json_text.LARGEST_DOCUMENT)
    except FileTooLarge as error:
        raise RunError("no_metrics", str(error)) from error


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


def report_lines(log: BinaryIO, words: Sequence[str]) -> tuple[Line, ...]:
    """The lines that are not blank of the blocks with one of the words, those beside, and the last.

    A log of one block, as most are, is there with all that it says.

    Args:
        log: from where its lines are counted.
        words: in lower case.

    Raises:
        RunError: ``no_metrics``, the words stand all over a large log, or it is larger than any.
    """
    found: list[Line] = []
    kept, is_beside = 0, False
    held: list[tuple[int, bytes]] = []  # the last block, unless it is kept
    for number, block in _blocks(log):
        lowered = block.lower()
        is_telling = any(word.encode() in lowered for word in words)
        held = [*held, (number, block)] if is_telling else [(number, block)]
        if is_telling or is_beside:
            found += _lines(held)
            kept, held = kept + len(held), []
        is_beside = is_telling
        message = f"words of reports stand in more than {MOST_BLOCKS} MiB of the log"
        message += f", or in more than {MOST_LINES:,} lines"
        is_small = kept <= MOST_BLOCKS and len(found) <= MOST_LINES
        require(is_small, "no_metrics", message, hint="keep one report per file")
    return (*found, *_lines(held))


def _blocks(log: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line, from 1 on."""
    number, begun, size = 1, b"", 0
    following = log.read(BLOCK)
    while block := following:
        following = log.read(BLOCK)
        size += len(block)
        require(size <= LARGEST_LOG, "no_metrics", f"the log is larger than {LARGEST_LOG} bytes")
        end = block.rfind(b"\n") + 1 if following else len(block)
        if end:
            whole = begun + block[:end]
            yield number, whole
            number += whole.count(b"\n")
            begun = block[end:]
        else:
            begun = (begun + block)[-LONGEST_LINE:]


def _lines(blocks: Iterable[tuple[int, bytes]]) -> list[Line]:
    return [
        line_of(raw[-LONGEST_LINE:].decode("utf-8", errors="replace"), number)
        for first, block in blocks
        for number, raw in enumerate(block.split(b"\n"), start=first)
        if raw and not raw.isspace()
    ]
