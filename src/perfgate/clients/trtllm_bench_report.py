"""Read the report of trtllm-bench: the JSON of ``--report_json``, or the printed one.

JSON: `get_statistics_dict` in `tensorrt_llm/bench/dataclasses/reporting.py`. It is written before
the text report is printed, so that it does not prove a clean exit.

Text: a whole report begins with the engine's or the requests' details and ends with those of the
dataset. One that begins with its performance overview is an excerpt, as documents show it: it is
read as far as it goes, if no part of it stops in the middle.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfgate.clients.logs import Line, last_line, require
from perfgate.clients.report_tables import (
    LATENCIES,
    SLACK,
    TRTLLM_BENCH,
    is_object_with,
    number,
    number_of,
    plain_fact,
    positive,
    require_agreeing,
    require_consistent,
    require_one,
    squeezed,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import METRICS

CLIENT = "trtllm-bench"

_STATISTICS = {"average": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_EXTREMES = {"minimum": "min", "maximum": "max"}
_NEEDED_POINTS = frozenset({"minimum", "maximum", "average", "p50", "p99"})

_OVERVIEW = "PERFORMANCE OVERVIEW"
_DATASET = "DATASET DETAILS"
_OPENING = ("ENGINE DETAILS", "PYTORCH BACKEND", "REQUEST DETAILS", "WORLD + RUNTIME INFORMATION")
WORDS = tuple(title.lower() for title in (*_OPENING, _OVERVIEW))
_TITLE = re.compile(r"= (?P<title>[A-Z][A-Z+ ]*[A-Z])(?: \((?P<mode>[^)]*)\))?")
_RULE = re.compile(r"={20,}")
_ROW = re.compile(r"\[(?P<group>Latency|TTFT|TPOT|GTPS|DT|ADT|DAR|AL)\] (?P<point>\w+)")
_DATASET_ROW = re.compile(r"(?P<point>MIN|MAX|AVG|P\d+):\s+(?P<isl>\S+)\s+(?P<osl>\S+)\s+\S+")
_IGNORED = frozenset(map(squeezed, TRTLLM_BENCH.ignored))
_FOUR_DIGITS = 0.00005  # half a unit of the last printed digit


@dataclass
class _Report:
    """What was met so far.

    Attributes:
        metrics: canonical name → value.
        facts: what it says of the engine and the requests.
        groups: group of rows → point → value, and where it stands.
        unknown: labels and keys that nothing is known of.
        sections: titles of what was printed.
        headed: headings of the groups of rows that were printed.
        dataset_points: rows of the dataset's details that were printed.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Json] = field(default_factory=dict)
    groups: dict[str, dict[str, tuple[object, str]]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    headed: list[str] = field(default_factory=list)
    dataset_points: set[str] = field(default_factory=set)

    def measurement(self, rounding: float = 0.0) -> Measurement:
        """The report as a measurement, once all rows are read.

        Raises:
            RunError: ``no_metrics``, its numbers contradict each other.
        """
        self.metrics["e2el_mean_ms"] = self.metrics["mean_request_latency_ms"]
        for name, row in TRTLLM_BENCH.breakdowns.items():
            told = self.groups.get(row.labels[0], {})
            if name in LATENCIES:
                self._read_latency(name, told)
            elif name in METRICS and "average" in told:
                self._again(name, *told["average"])
            elif name not in METRICS and told:
                self.facts[name] = {point: _shown(value) for point, (value, _) in told.items()}
        if self.unknown:
            self.facts["unknown_labels"] = [*dict.fromkeys(self.unknown)]
        require_consistent(self.metrics, self.facts, rounding)
        facts = {name: fact for name, fact in self.facts.items() if fact is not None}
        return Measurement(self.metrics, {"client": CLIENT, **facts})

    def _read_latency(self, short: str, told: Mapping[str, tuple[object, str]]) -> None:
        for point, (value, evidence) in told.items():
            if point in _STATISTICS:
                self._again(f"{short}_{_STATISTICS[point]}_ms", value, evidence)
            elif point in _EXTREMES:
                self.facts[f"{short}_{_EXTREMES[point]}_ms"] = _shown(value)

    def _again(self, name: str, value: object, evidence: str) -> None:
        """A metric that may be there already: both say the same."""
        measured = positive(value, evidence)
        before = self.metrics.get(name, measured)
        is_same = math.isclose(before, measured, rel_tol=SLACK)
        require_agreeing(is_same, f"{name} is {before:g} and {measured:g}", evidence)
        self.metrics[name] = measured


def _shown(value: object) -> Json:
    return number(value) if isinstance(value, str) else plain_fact(value)


is_report = is_object_with("performance", "request_info")


def parse(fields: Mapping[str, Any]) -> Measurement:
    """Read a decoded report.

    Raises:
        RunError: ``no_metrics``, something is missing or no number, or numbers contradict each
            other.
    """
    sections = {name: held for name, held in fields.items() if isinstance(held, dict)}
    require("performance" in sections, "no_metrics", "the report has no performance")
    values = {f"{name}.{key}": held[key] for name, held in sections.items() for key in held}
    found = _Report(facts=TRTLLM_BENCH.facts_of(values))
    streaming = bool(sections.get("streaming_metrics"))
    for name, row in TRTLLM_BENCH.metrics.items():
        key = row.keys[0].partition(".")[2]
        if row.keys[0] in values:
            value = values[row.keys[0]]
            found.metrics[name] = positive(value, _evidence(key, value)) * row.factor
        elif not row.optional and (streaming or not row.streamed):
            raise RunError("no_metrics", f"the report has no {key}")
    is_counted = "requests_completed" in found.facts
    require(is_counted, "no_metrics", "the report has no request_info.num_requests")
    for row in TRTLLM_BENCH.breakdowns.values():
        if isinstance(points := values.get(row.keys[0]), dict):
            told = {point: (value, _evidence(point, value)) for point, value in points.items()}
            found.groups[row.labels[0]] = told
    found.facts["streaming"] = streaming
    # Up to 1.0 the share is in percent (#7102); one below one percent was never asked of an engine.
    share = number_of(found.facts, "kv_cache_fraction")
    if share is not None and share > 1:
        found.facts["kv_cache_fraction"] = round(share / 100, 6)
    if energy := sections.get("energy"):
        found.facts["energy"] = dict(energy)
    found.unknown += [
        key.partition(".")[2]
        for key in values
        if key.startswith(("performance.", "streaming_metrics."))
        and key not in TRTLLM_BENCH.known_keys
    ]
    return found.measurement()


def _evidence(key: str, value: object) -> str:
    return f'"{key}": {json.dumps(value)}'


def is_printed(lines: Sequence[Line]) -> bool:
    """Whether a printed report begins somewhere in these lines."""
    return any(_title(line) in (*_OPENING, _OVERVIEW) for line in lines)


def is_piece(lines: Sequence[Line]) -> bool:
    """Whether rows of a report stand there whose beginning does not: the head of a log was cut."""
    return TRTLLM_BENCH.has_rows(lines, _ROW.fullmatch) and not is_printed(lines)


def parse_printed(lines: tuple[Line, ...]) -> Measurement:
    """Read the one report in these lines.

    Raises:
        RunError: ``no_metrics`` (none, several, a value that is no number, or numbers contradict
            each other) or ``truncated_output``.
    """
    _require_one(lines)
    found, section = _Report(), ""
    for line in lines:
        if title := _TITLE.fullmatch(line.text):
            section = title["title"]
            found.sections.append(section)
            if title["mode"]:
                found.facts["decoding_mode"] = title["mode"]
        elif section == _DATASET and found.dataset_points and _RULE.fullmatch(line.text):
            section = ""
        elif section:
            _read(found, section, line)
    _require_whole(found, lines)
    streamed = [name for name, row in TRTLLM_BENCH.metrics.items() if row.streamed]
    missing = [name for name in streamed if name not in found.metrics]
    if missing and missing != streamed:
        raise RunError("truncated_output", f"the report has token times, but no {missing[0]}")
    found.facts["streaming"] = not missing
    for heading, backend in (("PYTORCH BACKEND", "Pytorch"), ("ENGINE DETAILS", "TRT")):
        if heading in found.sections:
            found.facts["backend"] = backend
    tp, pp = found.facts.get("tp"), found.facts.get("pp")
    if isinstance(tp, int) and isinstance(pp, int):
        found.facts["gpus"] = tp * pp
    return found.measurement(_FOUR_DIGITS)


def _title(line: Line) -> str | None:
    match = _TITLE.fullmatch(line.text)
    return match["title"] if match else None


def _read(found: _Report, section: str, line: Line) -> None:
    if section == _DATASET and (row := _DATASET_ROW.fullmatch(line.text)):
        found.dataset_points.add(row["point"])
        if row["point"] == "AVG":
            found.facts["dataset_isl"] = number(row["isl"])
            found.facts["dataset_osl"] = number(row["osl"])
    elif section == "MACHINE DETAILS" and ", memory " in line.text:
        found.facts["gpu"] = line.text.partition(", memory ")[0]
    elif line.text.startswith("-- "):
        found.headed.append(line.text)
    elif labelled := line.labelled():
        if section == _OVERVIEW or section.startswith("DECODING"):
            _read_metric(found, *labelled, line.evidence)
        elif name := TRTLLM_BENCH.fact_labels.get(squeezed(labelled[0])):
            found.facts[name] = _fact(name, labelled[1])
        elif squeezed(labelled[0]) not in _IGNORED and number(labelled[1]) is not None:
            found.unknown.append(labelled[0])


def _read_metric(found: _Report, label: str, value: str, evidence: str) -> None:
    if row := _ROW.fullmatch(label):
        found.groups.setdefault(row["group"], {})[row["point"].lower()] = (value, evidence)
        return
    name = TRTLLM_BENCH.metric_labels.get(squeezed(label))
    if name is None:
        found.unknown += [label] if number(value) is not None else []
        return
    require(value, "truncated_output", f"{label} has no value", evidence)
    measured = positive(value, evidence) * TRTLLM_BENCH.metrics[name].factor
    if found.metrics.setdefault(name, measured) != measured:
        raise RunError("no_metrics", f"{label} appears twice", evidence=(evidence,))


def _fact(name: str, value: str) -> Json:
    """A fact in the units of the JSON report; "None" is what Python prints for no value."""
    if value in ("None", "N/A", ""):
        return None
    measured = number(value)
    if measured is None or name == "client_version" or not abs(measured) < float("inf"):
        return value
    if name == "kv_cache_fraction":
        return round(measured / 100, 6)
    is_whole = TRTLLM_BENCH.facts[name].whole and measured == int(measured)
    return int(measured) if is_whole else measured


def _require_one(lines: tuple[Line, ...]) -> None:
    overviews = [line.evidence for line in lines if _title(line) == _OVERVIEW]
    require_one(overviews, "report")
    is_there = overviews or is_printed(lines)
    require(is_there, "no_metrics", f"{CLIENT} printed no report", *last_line(lines))
    _require_part(overviews, f"no {_OVERVIEW}", lines)


def _require_whole(found: _Report, lines: tuple[Line, ...]) -> None:
    for name, needed in TRTLLM_BENCH.metrics.items():
        is_there = name in found.metrics or needed.optional or needed.streamed
        _require_part(is_there, f"no {name}", lines)
    for group, rows in found.groups.items():
        what = f"its [{group}] breakdown has only {', '.join(rows)}"
        _require_part(set(rows) >= _NEEDED_POINTS, what, lines)
    if any(title in _OPENING for title in found.sections):
        is_whole = "P99" in found.dataset_points
        _require_part(is_whole, f"its {_DATASET} are not whole", lines)
        is_counted = isinstance(found.facts.get("requests_completed"), int)
        require(is_counted, "no_metrics", "the report does not state its number of requests")
        return
    # If an excerpt has breakdowns at all, it has them to the last: TPOT, TTFT, …, Latency.
    is_whole = not found.groups or "Latency" in found.groups
    _require_part(is_whole, "no breakdown of the request latency", lines)
    is_whole = "DECODING STATISTICS" not in found.sections or "AL" in found.groups
    _require_part(is_whole, "its statistics of speculative decoding are incomplete", lines)
    headed = found.headed[len(found.groups) + (_DATASET in found.sections) :]
    heading = headed[-1].rstrip(" -") if headed else ""
    _require_part(not headed, f"nothing below {heading!r}", lines)


def _require_part(is_there: object, what: str, lines: tuple[Line, ...]) -> None:
    message = f"the report is truncated: {what}"
    require(is_there, "truncated_output", message, *last_line(lines))
