"""Reports of programs: what is a number, which row is which metric or fact, do the numbers agree.

The rows of load clients are in reports.toml. A report whose numbers contradict each other was cut,
mixed with another one or miscounted: none of its numbers is used then.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from perfgate.clients.logs import Line, require
from perfgate.core.errors import RunError
from perfgate.core.files.remembered import toml_beside
from perfgate.core.measurement import Json
from perfgate.core.plain import from_plain
from perfgate.scenarios.scenario import Workload

# Programs divide by durations that they take at slightly different moments; AIPerf's differ by
# some 0.1 %.
SLACK = 0.01
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)", re.I)
_LONGEST_NUMBER = 300  # characters
LATENCIES = ("ttft", "tpot", "itl", "e2el")
FROM_STREAM = ("ttft", "tpot", "itl")
FROM_SECOND_TOKEN = ("tpot", "itl")
_FEWEST_ROWS = 2  # of a report, by their labels: one alone may be a line of a log


@dataclass(frozen=True)
class Row:
    """One metric or fact of a report.

    Attributes:
        keys: in the JSON result; with sections, ``section.key``.
        labels: as printed.
        factor: to perfgate's unit.
        kind: of its unit, where the report itself names the unit.
        optional: whether some releases lack it.
        streamed: whether it is there only where answers were streamed.
        whole: whether it is a whole number.
        drafts: whether it is of speculative decoding: 0 where the server tells none, or several
            statistics, whose mean counts.
    """

    keys: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    factor: float = 1.0
    kind: str = ""
    optional: bool = False
    streamed: bool = False
    whole: bool = False
    drafts: bool = False


@dataclass(frozen=True)
class Table:
    """The rows of a program's reports.

    Attributes:
        metrics: canonical metric → its row.
        facts: fact → its row.
        breakdowns: latency (``ttft``), metric or fact of which several statistics are told → its
            row; its label is what stands before each of these.
        ignored: keys and labels that say nothing of a measurement.
        units: unit that the report names → its kind, and the factor to perfgate's.
    """

    metrics: Mapping[str, Row]
    facts: Mapping[str, Row]
    breakdowns: Mapping[str, Row] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    units: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @cached_property
    def metric_labels(self) -> Mapping[str, str]:
        """Label, as `squeezed` → metric."""
        return {squeezed(one): name for name, row in self.metrics.items() for one in row.labels}

    @cached_property
    def fact_labels(self) -> Mapping[str, str]:
        """Label, as `squeezed` → fact."""
        return {squeezed(one): name for name, row in self.facts.items() for one in row.labels}

    @cached_property
    def metric_keys(self) -> Mapping[str, str]:
        """Key → metric."""
        return {key: name for name, row in self.metrics.items() for key in row.keys}

    @cached_property
    def known_keys(self) -> frozenset[str]:
        """All keys that are a metric, a fact or ignored."""
        rows = (*self.facts.values(), *self.breakdowns.values())
        keys = (key for row in rows for key in row.keys)
        return frozenset({*self.metric_keys, *keys, *self.ignored})

    def facts_of(self, values: Mapping[str, object]) -> dict[str, Json]:
        """The facts that a JSON result has, key → value; those that are null left out."""
        found = {name: plain_fact(values.get(row.keys[0])) for name, row in self.facts.items()}
        return {name: value for name, value in found.items() if value is not None}

    def has_rows(self, lines: Iterable[Line], is_row: Callable[[str], object]) -> bool:
        """Whether rows of a printed report are among the lines, its beginning there or not.

        Args:
            lines: what a program printed.
            is_row: whether a label is one that this table does not have.
        """
        labels = {found[0] for line in lines if (found := line.labelled())}
        rows = [one for one in labels if squeezed(one) in self.metric_labels or is_row(one)]
        return len(rows) >= _FEWEST_ROWS


def is_object_with(*keys: str) -> Callable[[object], bool]:
    """Whether decoded JSON is an object with these fields, by which a program's report is known."""
    return lambda fields: isinstance(fields, dict) and set(keys) <= fields.keys()


def number(value: str) -> float | None:
    """The number that `value` is, perhaps NaN or infinite; None if it is none.

    Thousands separators, exponents and a percent sign (which is dropped, not divided by) are known.
    """
    text = value.strip().removesuffix("%").strip()
    if len(text) > _LONGEST_NUMBER:
        return None
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return float(text) if _NUMBER.fullmatch(text) else None


def positive(value: object, evidence: str) -> float:
    """A measured value: a number, finite, above zero.

    Args:
        value: number, or text that must be one.
        evidence: the line or field that it stands in.

    Raises:
        RunError: ``no_metrics``, it is anything else.
    """
    found = not_negative(value, evidence)
    require(found > 0, "no_metrics", f"a metric is {found:g}", evidence)
    return found


def not_negative(value: object, evidence: str) -> float:
    """A measured value that may be zero, too; otherwise as `positive`.

    Raises:
        RunError: ``no_metrics``, it is anything else.
    """
    found = number(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise RunError("no_metrics", "a metric has no number", evidence=(evidence,))
    require(0 <= found < float("inf"), "no_metrics", f"a metric is {found:g}", evidence)
    return float(found)


def plain_fact(value: object) -> Json:
    """A fact of a decoded report; NaN and infinity are no JSON and become text."""
    if isinstance(value, dict):
        return {str(key): plain_fact(held) for key, held in value.items()}
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else None


def squeezed(label: str) -> str:
    """A label without blanks and letter case."""
    return "".join(label.split()).lower()


_ROWS = toml_beside(__file__, "reports")
TRTLLM_BENCH = from_plain(Table, _ROWS["trtllm-bench"])
SERVING = from_plain(Table, _ROWS["serving"])
AIPERF = from_plain(Table, _ROWS["aiperf"])


def require_consistent(
    metrics: Mapping[str, float], facts: Mapping[str, Json], rounding: float = 0.0
) -> None:
    """The numbers of a report agree: rates × duration are what they count, as far as it is known.

    Throughput per GPU × GPUs is the throughput, of an unknown number of GPUs a whole one; and
    `require_ordered`.

    Args:
        metrics: with ``duration_s``.
        facts: requests that were completed, mean input and output tokens of each, GPUs.
        rounding: half a unit of the last printed digit of a metric; 0 for JSON.

    Raises:
        RunError: ``no_metrics``, with the arithmetic.
    """
    require_ordered(metrics)
    total, each = metrics.get("output_throughput"), metrics.get("output_throughput_per_gpu")
    if total is not None and each is not None:
        gpus = number_of(facts, "gpus")
        gpus = max(1, round(total / each)) if gpus is None else gpus
        equation = "output throughput per GPU × GPUs = output throughput"
        _require_product(equation, each, gpus, total, SLACK * max(total, each * gpus))
    requests, isl, osl = (number_of(facts, name) for name in ("requests_completed", "isl", "osl"))
    both = None if isl is None or osl is None else isl + osl
    # Rate → what it counts, and how many of them a request has.
    counted = {
        "request_throughput": ("requests", 1.0),
        "output_throughput": ("output tokens", osl),
        "total_token_throughput": ("input and output tokens", both),
    }
    for name, (what, of_request) in counted.items():
        if name in metrics and requests is not None and of_request is not None:
            rate, duration, total = metrics[name], metrics["duration_s"], requests * of_request
            allowed = SLACK * total + rounding * (rate + duration + 1)
            equation = f"{name.replace('_', ' ')} × duration = {what}"
            _require_product(equation, rate, duration, total, allowed)


def _require_product(equation: str, one: float, other: float, total: float, off: float) -> None:
    message = f"{equation}, but {one:g} × {other:g} = {one * other:g}, not {total:g}"
    require_agreeing(abs(one * other - total) <= off, message)


def require_ordered(metrics: Mapping[str, float]) -> None:
    """What can never be larger than something else is not.

    Raises:
        RunError: ``no_metrics``, with both numbers.
    """
    for chain in _ROWS["order"]:
        for lower, upper in pairwise(name for name in chain["metrics"] if name in metrics):
            most = metrics[upper] * (1 + chain.get("slack", SLACK))
            message = f"{lower} {metrics[lower]:g} is more than {upper} {metrics[upper]:g}"
            require_agreeing(not metrics[lower] > most, message)
    latency, all_ms = metrics.get("mean_request_latency_ms"), 1e3 * metrics.get("duration_s", 0)
    if latency and all_ms:
        message = f"a request took {latency:g} ms on average, all of them together {all_ms:g} ms"
        require_agreeing(not latency > all_ms * (1 + SLACK), message)


def require_lengths(
    workload: Workload, isl: float, osls: Sequence[float], share: float, tokens: int, hint: str
) -> None:
    """The asked lengths were really used, where the prompts were generated for them.

    Args:
        workload: what was asked.
        isl: mean input tokens of a request.
        osls: its mean output tokens, and others that must be as asked.
        share: of the asked lengths, how far the true ones may be off …
        tokens: … or by so many tokens.
        hint: the next step where the prompts are of another length.

    Raises:
        RunError: ``incomplete``.
    """
    if workload.dataset != "synthetic" or workload.isl is None or workload.osl is None:
        return
    # A chat template adds tokens to what was asked; an answer may end early unless EOS is ignored.
    is_template = workload.api == "chat" and isl > workload.isl
    lengths = [("ISL", isl, workload.isl, hint)] if not is_template else []
    honoured = "check that the engine honours ignore_eos"
    lengths += [
        ("OSL", osl, workload.osl, honoured)
        for osl in osls
        if workload.ignore_eos or osl > workload.osl
    ]
    for name, true, asked, next_step in lengths:
        message = f"{name} was {true:g} tokens, not the {asked} requested"
        is_close = not abs(true - asked) > max(share * asked, tokens)
        require(is_close, "incomplete", message, hint=next_step)


def has_latency(short: str, *, streaming: bool, one_token: bool) -> bool:
    """Whether a latency exists: there is none after the last token of one-token answers."""
    is_after_first = short in FROM_SECOND_TOKEN
    return short not in FROM_STREAM or (streaming and not (one_token and is_after_first))


def require_one(begins: Sequence[str], what: str) -> None:
    """Not more than one `what` begins in a file, at the lines `begins`.

    Raises:
        RunError: ``no_metrics``.
    """
    message, hint = f"{len(begins)} {what}s in one file", f"keep one {what} per file"
    require(len(begins) < 2, "no_metrics", message, *begins[1:2], hint=hint)


def require_agreeing(is_so: bool, what: str, *evidence: str) -> None:
    """The numbers of a report agree; `what` says how they do not."""
    require(is_so, "no_metrics", f"the report contradicts itself: {what}", *evidence)


def number_of(facts: Mapping[str, Json], name: str) -> float | None:
    """A fact that is a number; None: there is none."""
    value = facts.get(name)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value
