"""Read waivers.yaml: known losses that are let through for a time; errors with file and line.

Whether a waiver names anything that the suite has, and what it lets through, is decided in `faults`
and `waiver`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from perfgate.baselines.waivers.waiver import Waiver
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.files.paths import found_in_repository
from perfgate.core.plain import from_plain
from perfgate.scenarios.rules.metric_rules import unknown_metric
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import Document, Problem, read_document

_SCHEMA = Path(__file__).with_name("waivers.schema.json")
_WHAT = ("scenario", "metric", "hardware", "probe")  # what a waiver is for
_LAST_DAY = re.compile(r"waivers\[[0-9]+\]\.last_day")


def default_file() -> Path:
    """The gate repository's own list."""
    return found_in_repository("waivers.yaml")


def load_waivers(path: Path | None = None) -> tuple[Waiver, ...]:
    """The waivers of a file, in its order.

    Args:
        path: the file; None: the suite's own, which may be missing and then holds no waiver.

    Raises:
        SeveralInputErrors: all that is wrong with the file.
    """
    file = path or default_file()
    if file == default_file() and not file.exists():
        return ()
    if not file.exists():
        missing = InputError(
            "no such file",
            field="--waivers",
            found=file,
            expected="a file of waivers",
            hint="name another file; without the option the suite's own is read",
        )
        raise SeveralInputErrors([missing])
    document, errors = read_document(
        file,
        expected="schema_version and waivers",
        hint="write schema_version: 1 and waivers: [] (docs/how-to/waivers.md), "
        "or restore it from git",
    )
    if document is None:
        raise SeveralInputErrors(errors)
    errors = [error for error in errors if not _is_written_day(error)]
    known = {error.line for error in errors}  # what else is wrong in such a line follows from it
    found = (document.error(problem) for problem in _broken_rules(document))
    errors += [error for error in found if error.line not in known]
    if errors:
        raise SeveralInputErrors(sorted(errors, key=lambda error: error.line or 0))
    plain: Any = document.value
    return tuple(_waiver(document, number, one) for number, one in enumerate(plain["waivers"]))


def _waiver(document: Document, number: int, plain: dict[str, Any]) -> Waiver:
    read = {
        **plain,
        "reason": " ".join(plain["reason"].split()),
        "owner": " ".join(plain["owner"].split()),
        "line": document.line(("waivers", number)) or 1,
        "file": document.file,
    }
    return from_plain(Waiver, read)


def _is_written_day(error: InputError) -> bool:
    """Whether only the way in which a last day is written was refused.

    YAML has a kind of its own for dates without quotes. The text is kept, and the schema tells
    whether it is a day. (A field given twice tells no value.)
    """
    return error.found is not None and _LAST_DAY.fullmatch(error.field or "") is not None


def _broken_rules(document: Document) -> list[Problem]:
    """All that is wrong with the file's value; at each place, what is told first.

    Raises:
        InputError: the schema is damaged.
    """
    value = document.value
    schema = read_schema(_SCHEMA, described=True)
    found = {problem.path: problem for problem in schema.problems(value)}
    waivers = value.get("waivers") if isinstance(value, dict) else None
    given: list[Any] = waivers if isinstance(waivers, list) else []
    for problem in _unusable(given):
        found.setdefault(problem.path, problem)
    misshapen = {
        path[1] for path in found if len(path) == 2 or (len(path) > 2 and path[2] in _WHAT)
    }
    named = {number: one for number, one in enumerate(given) if number not in misshapen}
    return [*found.values(), *_overlapping(document, named)]


def _unusable(waivers: Iterable[Any]) -> Iterator[Problem]:
    """Names and days of the right shape that do not exist."""
    for number, waiver in enumerate(waivers):
        plain = waiver if isinstance(waiver, dict) else {}
        metric, last_day = plain.get("metric"), plain.get("last_day")
        if isinstance(metric, str):
            problem = unknown_metric(("waivers", number, "metric"), metric)
            if problem is not None:
                yield problem
        if isinstance(last_day, str):
            try:
                date.fromisoformat(last_day)
            except ValueError:
                path = ("waivers", number, "last_day")
                yield Problem(path, "no such day", expected="a day of the calendar")


def _overlapping(document: Document, waivers: Mapping[int, dict[str, Any]]) -> Iterator[Problem]:
    """Two waivers that can match one judgement: nobody could tell which of them holds."""
    for number, waiver in waivers.items():
        for first, other in waivers.items():
            if first == number:
                break
            if _overlap(waiver, other):
                yield Problem(
                    ("waivers", number),
                    "waiver given twice" if waiver == other else "conflicting waivers",
                    found=_what(waiver),
                    expected=f"one waiver for it; line {document.line(('waivers', first))} has "
                    f"one of {_what(other)}",
                    hint="keep one of the two",
                )
                break


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    same = all(one[name] == other[name] for name in ("scenario", "metric", "hardware"))
    probes = {waiver["probe"] for waiver in (one, other) if "probe" in waiver}
    return same and len(probes) < 2  # one without a probe is for all of them


def _what(waiver: Mapping[str, Any]) -> str:
    where = waiver.get("probe", "every probe")
    return f"{waiver['metric']} of {waiver['scenario']} on {waiver['hardware']}, {where}"
