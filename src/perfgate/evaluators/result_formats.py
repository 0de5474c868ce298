"""Result formats: what a file of unknown origin is, and what it says. Pure.

Every program that a scenario can call has an entry here, clients too, in the order in which they
are tried.
"""

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from perfgate.clients import aiperf, serving_report, trtllm_bench_report, trtllm_offline
from perfgate.clients.logs import Line, decoded, last_line, report_lines
from perfgate.clients.serving_clients import require_one_run
from perfgate.core.errors import FAILURES, InputError, RunError
from perfgate.core.failures import TELLING, diagnose
from perfgate.core.files import json_text
from perfgate.core.files.untrusted_files import open_input
from perfgate.core.measurement import Json, Measurement
from perfgate.core.programs.raw_log import lines_with
from perfgate.evaluators import lm_eval_results, trtllm_eval

_Formats = Mapping[str, tuple[Callable[[Any], bool], Callable[[Any], Measurement]]]
"""Program → how its reports are known, and how they are read."""


@dataclass(frozen=True)
class Parsed:
    """What a file says: a measurement, or the error that it shows.

    Attributes:
        measurement: None if there is no usable one.
        failure: class of the failure, if there is no measurement.
        message: what is wrong, in one sentence.
        evidence: line number and text of the first telling line.
        hint: the next step for a person.
    """

    measurement: Measurement | None = None
    failure: str = ""
    message: str = ""
    evidence: tuple[int, str] | None = None
    hint: str = ""

    def plain(self) -> dict[str, Json]:
        """As JSON."""
        said = self.measurement
        if said is not None:
            return {"outcome": "success", "metrics": dict(said.metrics), "facts": dict(said.facts)}
        why: dict[str, Json] = {"class": self.failure, "evidence": [*(self.evidence or ())]}
        return {"outcome": "error", **why, "hint": self.hint, "message": self.message}


class _NoReport(RunError):
    """There is no report at all; what else the file holds may tell why."""


# sglang-bench before those of which it is a relative: what they lack tells them apart.
# Those of vLLM look the same without a look at who wrote them (`_read`).
_OF_VLLM = ("benchmark_serving", "vllm-bench", "vllm-benchmark-serving")
_TEXTS: _Formats = {
    "trtllm-bench": (trtllm_bench_report.is_printed, trtllm_bench_report.parse_printed),
    "sglang-bench": (serving_report.is_printed_by_sglang, serving_report.parse_printed),
    **dict.fromkeys(_OF_VLLM, (serving_report.is_printed, serving_report.parse_printed)),
    # Before lm_eval, whose table it prints in percent.
    "trtllm-eval": (trtllm_eval.is_report, trtllm_eval.parse),
    "lm_eval": (lm_eval_results.is_table, lm_eval_results.parse_tables),
    "trtllm-gpqa": (trtllm_eval.is_gpqa_report, trtllm_eval.parse_gpqa),
    "trtllm-quickstart": (trtllm_offline.is_quickstart, trtllm_offline.parse_quickstart),
}
_DOCUMENTS: _Formats = {
    "trtllm-bench": (trtllm_bench_report.is_report, trtllm_bench_report.parse),
    "sglang-bench": (serving_report.is_of_sglang, serving_report.parse),
    **dict.fromkeys(_OF_VLLM, (serving_report.is_report, serving_report.parse)),
    # Its printed table is an ornament of the terminal; the export is the result.
    "aiperf": (aiperf.is_report, aiperf.parse_file),
    "lm_eval": (lm_eval_results.is_results, lm_eval_results.parse_results),
}
CLIENTS = tuple({**_TEXTS, **_DOCUMENTS})
_WORDS = (
    *trtllm_bench_report.WORDS,
    *serving_report.WORDS,
    *lm_eval_results.WORDS,
    *trtllm_eval.WORDS,
    *trtllm_eval.GPQA_WORDS,
    *trtllm_offline.QUICKSTART_WORDS,
)
_OPENING = 4096  # bytes in which a JSON document begins


def parse(content: str, client: str | None = None) -> Parsed:
    """Read a file's text; see `parse_log`."""
    return parse_log(BytesIO(content.encode(errors="replace")), client)


def parse_file(path: Path, client: str | None = None) -> Parsed:
    """Read a file that a person names; see `parse_log`.

    Raises:
        InputError: it cannot be read, is no regular file, or there is no such program.
    """
    try:
        with open_input(path) as file:
            return parse_log(file, client)
    except OSError as error:
        problem, expected = "the file cannot be read", "a result or a log"
        found = error.strerror or str(error)
        raise InputError(problem, file=path, found=found, expected=expected) from error


def parse_log(file: BinaryIO, client: str | None = None) -> Parsed:
    """Read one file, a log as a stream.

    Args:
        file: a result or a log, text or JSON.
        client: the program that it comes from; None: found out.

    Raises:
        InputError: no such program, or none whose files can be read alone.
    """
    if client is not None and client not in CLIENTS:
        problem, known = "not a program whose results can be read alone", ", ".join(CLIENTS)
        raise InputError(problem, field="--client", found=client, expected=f"one of {known}")
    lines: tuple[Line, ...] = ()
    try:
        lines = report_lines(file, _WORDS)
        return Parsed(_measured(file, lines, client))
    except RunError as error:
        return _failed(error, file, lines)


def _measured(file: BinaryIO, lines: tuple[Line, ...], client: str | None) -> Measurement:
    found = _read(_TEXTS, lines, client, serving_report.is_printed_by_vllm)
    if found is not None:
        return found
    program = client or "a known program"
    file.seek(0)
    if file.read(_OPENING).removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        size = file.seek(0, os.SEEK_END)  # as much would be allocated as is asked for
        file.seek(0)
        content = file.read(min(size, json_text.LARGEST_DOCUMENT) + 1)
        require_one_run(content, "the file")
        fields = decoded(content, "the file", last_line(lines))
        found = _read(_DOCUMENTS, fields, client, serving_report.is_of_vllm)
        if found is not None:
            return found
        shown = ", ".join(list(fields)[:8]) or "nothing"
        raise RunError("no_metrics", f"no report of {program}: an object with {shown}")
    if trtllm_bench_report.is_piece(lines) or serving_report.is_piece(lines):
        message = "the report is truncated: its beginning is missing"
        raise RunError("truncated_output", message, evidence=last_line(lines))
    raise _NoReport("no_metrics", f"no report of {program}", evidence=last_line(lines))


def _read(
    formats: _Formats, content: Any, client: str | None, is_of_vllm: Callable[[Any], bool]
) -> Measurement | None:
    """What a report of the named program, or of the first that knows it, says; None: it is none."""
    for name, (is_known, read) in formats.items():
        if client in (None, name) and is_known(content):
            if client is None and name == "benchmark_serving" and is_of_vllm(content):
                name = "vllm-bench"
            measured = read(content)
            return replace(measured, facts={"client": name, **measured.facts})
    return None


def _failed(error: RunError, file: BinaryIO, lines: tuple[Line, ...]) -> Parsed:
    """The error, or the cause that the same log shows for a report that is missing or cut."""
    if isinstance(error, _NoReport) or error.failure == "truncated_output":
        cause = diagnose(lines_with(file, TELLING))
        if cause is not None and cause.failure != "unknown":
            meaning, place = FAILURES[cause.failure].meaning, (cause.line, cause.text)
            return Parsed(None, cause.failure, meaning, place, cause.next_step)
        if cause is not None and isinstance(error, _NoReport):
            # Something went wrong, and no line says what: more than that there is no report.
            error = RunError("unknown", error.message, evidence=(cause.text,))
    return Parsed(None, error.failure, error.message, _placed(error, lines), error.hint)


def _placed(error: RunError, lines: tuple[Line, ...]) -> tuple[int, str]:
    """The first telling line with its number; where no line tells, the last one that says anything.

    A field of a JSON file is found by how it is written there, or else by its name; its line may be
    the whole file, so that the field alone is shown.
    """
    for wanted in error.evidence[:1]:
        exact = [line.number for line in lines if line.evidence == wanted]
        for sought in (wanted, wanted.partition(":")[0]) if wanted.startswith('"') else ():
            exact += [line.number for line in lines if sought in line.raw]
        return (exact or [1])[0], wanted
    telling = [line for line in lines if line.evidence]
    return (telling[-1].number, telling[-1].evidence) if telling else (1, "")
