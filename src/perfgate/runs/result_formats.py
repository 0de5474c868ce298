"""Result formats: what a file of unknown origin is, and what it says. Pure.

Every program that a scenario can call has one entry here, in the order in which they are tried.
"""

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from perfgate.clients import (
    aiperf_file,
    serving_report,
    serving_text,
    trtllm_bench_json,
    trtllm_bench_text,
    trtllm_quickstart,
)
from perfgate.clients.logs import decoded
from perfgate.clients.report_lines import Line, last_line
from perfgate.clients.report_log import report_lines, telling_lines
from perfgate.clients.sglang_results import require_one_run
from perfgate.core import json_text
from perfgate.core.errors import InputError, RunError
from perfgate.core.failures import FAILURES, TELLING, diagnose_log
from perfgate.core.input_files import open_input
from perfgate.core.measurement import Json, Measurement
from perfgate.evaluators import lm_eval_tables, trtllm_eval_results, trtllm_gpqa

Lines = tuple[Line, ...]
Fields = Mapping[str, Any]


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
        if self.measurement is not None:
            return {
                "outcome": "success",
                "metrics": dict(self.measurement.metrics),
                "facts": dict(self.measurement.facts),
            }
        return {
            "outcome": "error",
            "class": self.failure,
            "evidence": None if self.evidence is None else list(self.evidence),
            "hint": self.hint,
            "message": self.message,
        }


class _NoReport(RunError):
    """There is no report at all; what else the file holds may tell why."""


@dataclass(frozen=True)
class _Format:
    """One program's reports: how they are known, and how they are read; text, JSON or both."""

    known_text: Callable[[Lines], bool] | None = None
    read_text: Callable[[Lines], Measurement] | None = None
    known_json: Callable[[Fields], bool] | None = None
    read_json: Callable[[Fields], Measurement] | None = None


def _serving(client: str) -> _Format:
    return _Format(
        serving_text.is_report,
        lambda lines: serving_text.parse(lines).measurement(client),
        serving_report.is_report,
        lambda fields: serving_report.parse(fields).measurement(client),
    )


_FORMATS: dict[str, _Format] = {
    "trtllm-bench": _Format(
        trtllm_bench_text.is_report,
        lambda lines: trtllm_bench_text.parse(lines).measurement(),
        trtllm_bench_json.is_report,
        lambda fields: trtllm_bench_json.parse(fields).measurement(),
    ),
    # Before those of which it is a relative: what they lack tells them apart.
    "sglang-bench": replace(
        _serving("sglang-bench"),
        known_text=serving_text.is_of_sglang,
        known_json=serving_report.is_of_sglang,
    ),
    "benchmark_serving": _serving("benchmark_serving"),
    "vllm-bench": _serving("vllm-bench"),
    "vllm-benchmark-serving": _serving("vllm-benchmark-serving"),
    # Its printed table is an ornament of the terminal; the export is the result.
    "aiperf": _Format(known_json=aiperf_file.is_report, read_json=aiperf_file.parse),
    # Before lm_eval, whose table it prints in percent.
    "trtllm-eval": _Format(trtllm_eval_results.is_report, trtllm_eval_results.parse),
    "lm_eval": _Format(
        lm_eval_tables.is_table,
        lm_eval_tables.parse,
        lm_eval_tables.is_results,
        lm_eval_tables.parse_results,
    ),
    "trtllm-gpqa": _Format(trtllm_gpqa.is_report, trtllm_gpqa.parse),
    "trtllm-quickstart": _Format(trtllm_quickstart.is_report, trtllm_quickstart.parse),
}
CLIENTS = tuple(_FORMATS)
_WORDS = (
    *trtllm_bench_text.WORDS,
    *serving_text.WORDS,
    *lm_eval_tables.WORDS,
    *trtllm_eval_results.WORDS,
    *trtllm_gpqa.WORDS,
    *trtllm_quickstart.WORDS,
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
        raise InputError(
            "the file cannot be read",
            file=path,
            found=error.strerror or str(error),
            expected="a result or a log",
        ) from error


def parse_log(file: BinaryIO, client: str | None = None) -> Parsed:
    """Read one file, a log as a stream.

    Args:
        file: a result or a log, text or JSON.
        client: the program that it comes from; None: found out.

    Raises:
        InputError: no such program, or none whose files can be read alone.
    """
    if client is not None and client not in _FORMATS:
        raise InputError(
            "not a program whose results can be read alone",
            field="--client",
            found=client,
            expected="one of " + ", ".join(_FORMATS),
        )
    lines: Lines = ()
    try:
        lines = report_lines(file, _WORDS)
        name, measured = _measured(file, lines, client)
    except RunError as error:
        return _failed(error, file, lines)
    return Parsed(replace(measured, facts={"client": name, **measured.facts}))


def _measured(file: BinaryIO, lines: Lines, client: str | None) -> tuple[str, Measurement]:
    name = client or _client_of_text(lines)
    if name is not None:
        one = _FORMATS[name]
        if one.known_text and one.read_text and one.known_text(lines):
            return name, one.read_text(lines)
    file.seek(0)
    if file.read(_OPENING).removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        size = file.seek(0, os.SEEK_END)  # as much would be allocated as is asked for
        file.seek(0)
        content = file.read(min(size, json_text.LARGEST_DOCUMENT) + 1)
        require_one_run(content, "the file")
        return _from_json(decoded(content, "the file", last_line(lines)), client)
    if trtllm_bench_text.is_piece(lines) or serving_text.is_piece(lines):
        raise RunError(
            "truncated_output",
            "the report is truncated: its beginning is missing",
            evidence=last_line(lines),
        )
    program = client or "a known program"
    raise _NoReport("no_metrics", f"no report of {program}", evidence=last_line(lines))


def _client_of_text(lines: Lines) -> str | None:
    for name, one in _FORMATS.items():
        if one.known_text is not None and one.known_text(lines):
            of_vllm = name == "benchmark_serving" and serving_text.is_of_vllm(lines)
            return "vllm-bench" if of_vllm else name
    return None


def _client_of_json(fields: Fields) -> str | None:
    for name, one in _FORMATS.items():
        if one.known_json is not None and one.known_json(fields):
            of_vllm = name == "benchmark_serving" and serving_report.is_of_vllm(fields)
            return "vllm-bench" if of_vllm else name
    return None


def _from_json(fields: Fields, client: str | None) -> tuple[str, Measurement]:
    name = client or _client_of_json(fields) or ""
    one = _FORMATS.get(name)
    if one and one.known_json and one.read_json and one.known_json(fields):
        return name, one.read_json(fields)
    shown = ", ".join(list(fields)[:8]) or "nothing"
    raise RunError(
        "no_metrics", f"no report of {client or 'a known program'}: an object with {shown}"
    )


def _failed(error: RunError, file: BinaryIO, lines: Lines) -> Parsed:
    """The error, or the cause that the same log shows for a report that is missing or cut."""
    if isinstance(error, _NoReport) or error.failure == "truncated_output":
        file.seek(0)
        cause = diagnose_log(telling_lines(file, TELLING))
        if cause is not None and cause.failure != "unknown":
            return Parsed(
                failure=cause.failure,
                message=FAILURES[cause.failure].meaning,
                evidence=(cause.line, cause.text),
                hint=cause.next_step,
            )
        if cause is not None and isinstance(error, _NoReport):
            # Something went wrong, and no line says what: more than that there is no report.
            error = RunError("unknown", error.message, evidence=(cause.text,))
    return Parsed(
        failure=error.failure,
        message=error.message,
        evidence=_placed(error, lines),
        hint=error.hint,
    )


def _placed(error: RunError, lines: Lines) -> tuple[int, str]:
    """The first telling line with its number; where no line tells, the last one that says anything.

    A field of a JSON file is found by how it is written there, or else by its name; its line may be
    the whole file, so that the field alone is shown.
    """
    for wanted in error.evidence[:1]:
        key = wanted.partition(":")[0]
        for line in lines:
            if line.evidence == wanted:
                return line.number, wanted
        for sought in (wanted, key):
            for line in lines:
                if sought.startswith('"') and sought in line.raw:
                    return line.number, wanted
        return 1, wanted
    telling = [line for line in lines if line.evidence]
    return (telling[-1].number, telling[-1].evidence) if telling else (1, "")
