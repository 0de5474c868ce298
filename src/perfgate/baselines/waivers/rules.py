"""What a list of waivers must be: its schema, and what a schema cannot say."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from perfgate.scenarios.metric_rules import unknown_metric
from perfgate.scenarios.problem import Problem
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import Document

SCHEMA = Path(__file__).with_name("waivers.schema.json")
_WHAT = ("scenario", "metric", "hardware", "probe")  # what a waiver is for


def broken_waiver_rules(document: Document) -> list[Problem]:
    """All that is wrong with the file's value; at each place, what is told first.

    Raises:
        InputError: the schema is damaged.
    """
    value = document.value
    schema = read_schema(SCHEMA, described=True)
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
