"""Read the report that trtllm-bench prints, in both generations of labels.

A whole report begins with the engine's or the requests' details and ends with those of the dataset.
One that begins with its performance overview is an excerpt, as documents show it: it is read as
far as it goes, if no part of it stops in the middle.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfgate.clients.identities import SLACK
from perfgate.clients.report_lines import FEWEST_ROWS, Line, last_line, number, positive
from perfgate.clients.trtllm_bench_report import (
    EXTREMES,
    OPTIONAL,
    PERCENTILES,
    PERFORMANCE,
    STREAMING,
    BenchReport,
    require_whole_streaming,
)
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json

OVERVIEW = "PERFORMANCE OVERVIEW"
DATASET = "DATASET DETAILS"
_OPENING = ("ENGINE DETAILS", "PYTORCH BACKEND", "REQUEST DETAILS", "WORLD + RUNTIME INFORMATION")
WORDS = tuple(title.lower() for title in (*_OPENING, OVERVIEW))
_TITLE = re.compile(r"= (?P<title>[A-Z][A-Z+ ]*[A-Z])(?: \((?P<mode>[^)]*)\))?")
_RULE = re.compile(r"={20,}")

# Labels without blanks and letter case → key in the JSON report. The first generation (up to 0.19
# and in some documents) spells units out, the second (from 0.20 on) shortens some.
_OVERVIEW_LABELS = {
    re.sub(r"\s", "", label).lower(): key
    for label, key in {
        "Request Throughput (req/sec)": "request_throughput_req_s",
        "Total Output Throughput (tokens/sec)": "system_output_throughput_tok_s",
        "Total Token Throughput (tokens/sec)": "system_total_throughput_tok_s",
        "Total Latency (ms)": "total_latency_ms",
        "Average request latency (ms)": "avg_request_latency_ms",
        "Per User Output Throughput (tokens/sec/user)": "output_throughput_per_user_tok_s",
        "Per User Output Throughput [w/ ctx] (tps/user)": "output_throughput_per_user_tok_s",
        "Per GPU Output Throughput (tokens/sec/gpu)": "output_throughput_per_gpu_tok_s",
        "Per GPU Output Throughput (tps/gpu)": "output_throughput_per_gpu_tok_s",
        "Average time-to-first-token [TTFT] (ms)": "avg_ttft_ms",
        "Average time-per-output-token [TPOT] (ms)": "avg_tpot_ms",
        "Per User Output Speed [1/TPOT] (tokens/sec/user)": "token_output_speed_tok_s",
        "Per User Output Speed (tps/user)": "token_output_speed_tok_s",
    }.items()
}
_FACT_LABELS = {
    "Model": "model",
    "TensorRT-LLM Version": "client_version",
    "TensorRT LLM Version": "client_version",
    "Dtype": "dtype",
    "KV Cache Dtype": "kv_cache_dtype",
    "Quantization": "quantization",
    "TP Size": "tp",
    "PP Size": "pp",
    "EP Size": "ep",
    "Max Runtime Batch Size": "max_batch_size",
    "Max Runtime Tokens": "max_num_tokens",
    "Scheduling Policy": "scheduling_policy",
    "KV Memory Percentage": "kv_cache_fraction",
    "Number of requests": "requests_completed",
    "Number of concurrent requests": "concurrency_mean",
    "Average Input Length (tokens)": "isl",
    "Average Output Length (tokens)": "osl",
    "Number of Sequences": "dataset_requests",
}
_IGNORED = frozenset(
    {"Model Path", "Engine Directory", "Issue Rate (req/sec)", "Dataset Path", "Revision"}
    | {"Max Input Length", "Max Sequence Length"}
)
_WHOLE_NUMBERS = frozenset(
    {"tp", "pp", "ep", "max_batch_size", "max_num_tokens", "requests_completed", "dataset_requests"}
)
_ROW = re.compile(r"\[(?P<group>Latency|TTFT|TPOT|GTPS|DT|ADT|DAR|AL)\] (?P<point>\w+)")
_DATASET_ROW = re.compile(r"(?P<point>MIN|MAX|AVG|P\d+):\s+(?P<isl>\S+)\s+(?P<osl>\S+)\s+\S+")
_LATENCIES = {"Latency": "e2el", "TTFT": "ttft", "TPOT": "tpot"}
_ACCEPTANCE = {"AL": "acceptance_length", "DAR": "draft_acceptance_rate"}
_NEEDED_POINTS = frozenset({"minimum", "maximum", "average", "p50", "p99"})
_FOUR_DIGITS = 0.00005  # half a unit of the last printed digit


@dataclass
class _Found:
    """What was met so far, top to bottom."""

    sections: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Json] = field(default_factory=dict)
    groups: dict[str, dict[str, Line]] = field(default_factory=dict)
    headed: list[str] = field(default_factory=list)
    dataset_points: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)


def is_report(lines: Sequence[Line]) -> bool:
    """Whether a report begins somewhere in these lines."""
    return any(_title(line) in (*_OPENING, OVERVIEW) for line in lines)


def is_piece(lines: Sequence[Line]) -> bool:
    """Whether rows of a report stand there whose beginning does not: the head of a log was cut."""
    labels = {found[0] for line in lines if (found := line.labelled())}
    rows = [one for one in labels if _spelled(one) in _OVERVIEW_LABELS or _ROW.fullmatch(one)]
    return len(rows) >= FEWEST_ROWS and not is_report(lines)


def parse(lines: tuple[Line, ...]) -> BenchReport:
    """Read the one report in these lines.

    Raises:
        RunError: ``no_metrics`` (none, several, or a value that is no number) or
            ``truncated_output``.
    """
    _require_one(lines)
    found = _Found()
    section = ""
    for line in lines:
        title = _title(line)
        if title is not None:
            section = title
            found.sections.append(title)
            if mode := _mode(line):
                found.facts["decoding_mode"] = mode
        elif _RULE.fullmatch(line.text) and section == DATASET and found.dataset_points:
            section = ""
        elif section:
            _read(found, section, line)
    _require_whole(found, lines)
    found.metrics["e2el_mean_ms"] = found.metrics["mean_request_latency_ms"]
    found.facts["streaming"] = require_whole_streaming(found.metrics)
    _take_groups(found)
    if found.unknown:
        found.facts["unknown_labels"] = [*dict.fromkeys(found.unknown)]
    return BenchReport(found.metrics, _facts(found), _FOUR_DIGITS)


def _title(line: Line) -> str | None:
    match = _TITLE.fullmatch(line.text)
    return match["title"] if match else None


def _mode(line: Line) -> str | None:
    match = _TITLE.fullmatch(line.text)
    return match["mode"] if match else None


def _read(found: _Found, section: str, line: Line) -> None:
    if section == DATASET and (row := _DATASET_ROW.fullmatch(line.text)):
        found.dataset_points.add(row["point"])
        if row["point"] == "AVG":
            found.facts["dataset_isl"] = number(row["isl"])
            found.facts["dataset_osl"] = number(row["osl"])
        return
    if section == "MACHINE DETAILS" and ", memory " in line.text:
        found.facts["gpu"] = line.text.partition(", memory ")[0]
        return
    if line.text.startswith("-- "):
        found.headed.append(line.text)
        return
    labelled = line.labelled()
    if labelled is None:
        return
    label, value = labelled
    if section == OVERVIEW or section.startswith("DECODING"):
        _read_value(found, label, value, line)
    elif label in _FACT_LABELS:
        found.facts[_FACT_LABELS[label]] = _fact(_FACT_LABELS[label], value)
    elif label not in _IGNORED and number(value) is not None:
        found.unknown.append(label)


def _read_value(found: _Found, label: str, value: str, line: Line) -> None:
    if row := _ROW.fullmatch(label):
        found.groups.setdefault(row["group"], {})[row["point"].lower()] = line
        return
    key = _OVERVIEW_LABELS.get(_spelled(label))
    if key is None:
        if number(value) is not None:
            found.unknown.append(label)
        return
    if not value:
        raise RunError("truncated_output", f"{label} has no value", evidence=(line.evidence,))
    metric, factor = (PERFORMANCE | STREAMING)[key]
    measured = positive(value, line.evidence) * factor
    if found.metrics.setdefault(metric, measured) != measured:
        raise RunError("no_metrics", f"{label} appears twice", evidence=(line.evidence,))


def _spelled(label: str) -> str:
    """A label as the table of labels has it."""
    return re.sub(r"\s", "", label).lower()


def _fact(name: str, value: str) -> Json:
    """A fact in the units of the JSON report; "None" is what Python prints for no value."""
    if value in ("None", "N/A", ""):
        return None
    measured = number(value)
    if measured is None or name == "client_version" or not abs(measured) < float("inf"):
        return value
    if name == "kv_cache_fraction":
        return round(measured / 100, 6)
    return int(measured) if name in _WHOLE_NUMBERS and measured == int(measured) else measured


def _facts(found: _Found) -> dict[str, Json]:
    facts: dict[str, Json] = {
        name: value for name, value in found.facts.items() if value is not None
    }
    backend = "Pytorch" if "PYTORCH BACKEND" in found.sections else None
    backend = "TRT" if "ENGINE DETAILS" in found.sections else backend
    if backend:
        facts["backend"] = backend
    tp, pp = facts.get("tp"), facts.get("pp")
    if isinstance(tp, int) and isinstance(pp, int):
        facts["gpus"] = tp * pp
    return facts


def _require_one(lines: tuple[Line, ...]) -> None:
    overviews = [line.evidence for line in lines if _title(line) == OVERVIEW]
    if len(overviews) > 1:
        raise RunError(
            "no_metrics",
            f"{len(overviews)} reports in one file",
            evidence=(overviews[1],),
            hint="keep one report per file",
        )
    if not overviews and not is_report(lines):
        raise RunError("no_metrics", "trtllm-bench printed no report", evidence=last_line(lines))
    if not overviews:
        raise _cut(f"no {OVERVIEW}", lines)


def _require_whole(found: _Found, lines: tuple[Line, ...]) -> None:
    for key, (metric, _) in PERFORMANCE.items():
        if metric not in found.metrics and key not in OPTIONAL:
            raise _cut(f"no {metric}", lines)
    for group, rows in found.groups.items():
        if not set(rows) >= _NEEDED_POINTS:
            raise _cut(f"its [{group}] breakdown has only {', '.join(rows)}", lines)
    if not any(title in _OPENING for title in found.sections):
        _require_whole_excerpt(found, lines)
    elif "P99" not in found.dataset_points:
        raise _cut(f"its {DATASET} are not whole", lines)
    elif not isinstance(found.facts.get("requests_completed"), int):
        raise RunError("no_metrics", "the report does not state its number of requests")


def _require_whole_excerpt(found: _Found, lines: tuple[Line, ...]) -> None:
    """If an excerpt has breakdowns at all, it has them to the last: TPOT, TTFT, …, Latency."""
    if found.groups and "Latency" not in found.groups:
        raise _cut("no breakdown of the request latency", lines)
    if "DECODING STATISTICS" in found.sections and "AL" not in found.groups:
        raise _cut("its statistics of speculative decoding are incomplete", lines)
    if len(found.headed) > len(found.groups) + (DATASET in found.sections):
        raise _cut(f"nothing below {found.headed[-1].rstrip(' -')!r}", lines)


def _cut(what: str, lines: tuple[Line, ...]) -> RunError:
    return RunError(
        "truncated_output",
        f"the report is truncated: {what}",
        evidence=last_line(lines),
    )


def _take_groups(found: _Found) -> None:
    for group, rows in found.groups.items():
        values = {point: (line.labelled() or ("", ""))[1] for point, line in rows.items()}
        if group in _LATENCIES:
            short = _LATENCIES[group]
            for point, statistic in PERCENTILES.items():
                if point in rows:
                    name, evidence = f"{short}_{statistic}_ms", rows[point].evidence
                    _take(found, name, positive(values[point], evidence), evidence)
            for point, extreme in EXTREMES.items():
                found.facts[f"{short}_{extreme}_ms"] = number(values[point])
        elif group in _ACCEPTANCE:
            evidence = rows["average"].evidence
            _take(found, _ACCEPTANCE[group], positive(values["average"], evidence), evidence)
        elif group == "GTPS":
            found.facts["output_speed_percentiles"] = {
                point: number(value) for point, value in values.items()
            }


def _take(found: _Found, name: str, value: float, evidence: str) -> None:
    before = found.metrics.setdefault(name, value)
    if not math.isclose(before, value, rel_tol=SLACK):
        raise RunError(
            "no_metrics",
            f"the report contradicts itself: {name} is {before:g} and {value:g}",
            evidence=(evidence,),
        )
