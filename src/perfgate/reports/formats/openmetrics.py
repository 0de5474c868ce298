"""The report as OpenMetrics text: verdicts and judged values, for GitLab and Prometheus.

GitLab compares the values of two pipelines as texts, so they are rounded to the noise: a value that
moved by less seldom gets another text. The decision is the gate's, from the values as measured.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from perfgate.core.metrics import is_accuracy
from perfgate.core.redaction import visible
from perfgate.reports.formats.base import ReportContext, ReportFormat, report_format
from perfgate.reports.overview import counts, known, state
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.reports.shown import shown
from perfgate.verdicts.measured import MeasuredMetric

FINEST = 0.005  # of a value; no text tells less apart
FINEST_SCORE = 0.005  # of accuracy, half a point
_LONGEST = 200  # characters of a label's value
_STAT = re.compile(r"(?P<name>.+?)_(?P<stat>mean|median|p\d+)_(?P<unit>ms)")
# Unit of the table of metrics → unit in a name, and what a value is multiplied by.
_UNITS: Mapping[str, tuple[str, float]] = {
    "req/s": ("requests_per_second", 1.0),
    "tokens/s": ("tokens_per_second", 1.0),
    "ms": ("seconds", 0.001),
    "s": ("seconds", 1.0),
    "tokens": ("tokens", 1.0),
    "fraction": ("ratio", 1.0),
}


@dataclass
class _Family:
    """One metric family: its lines, no label set twice."""

    name: str
    kind: str
    help: str
    unit: str = ""
    samples: dict[str, str] = field(default_factory=dict)

    def add(self, labels: Mapping[str, str], value: str) -> None:
        told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items() if text)
        self.samples.setdefault(f"{{{told}}}" if told else "", value)

    def lines(self) -> Iterator[str]:
        if self.samples:
            yield f"# TYPE {self.name} {self.kind}"
            if self.unit:
                yield f"# UNIT {self.name} {self.unit}"
            yield f"# HELP {self.name} {self.help}"
            suffix = "_info" if self.kind == "info" else ""
            yield from (f"{self.name}{suffix}{told} {one}" for told, one in self.samples.items())


@report_format("openmetrics")
class OpenmetricsFormat(ReportFormat):
    """Gauges with few labels; what was not measured has no line."""

    file = "metrics.txt"

    def render(self, report: RunReport, context: ReportContext) -> str:  # noqa: ARG002
        """The text, with `# EOF` as its last line."""
        report = shown(report)
        families = [*_of_run(report), *_of_tests(report)]
        lines = [line for family in families for line in family.lines()]
        return "".join(f"{line}\n" for line in [*lines, "# EOF"])


def _of_run(report: RunReport) -> Iterator[_Family]:
    synthetic = "true" if report.synthetic else ""
    info = _Family("perfgate_run", "info", "What the values are of.")
    build = next((one.build for one in report.results if one.build is not None), None)
    info.add(
        {
            "state": state(report),
            "engine": build.name if build else "",
            "engine_version": build.version if build else "",
            "engine_commit": build.commit if build else "",
            "synthetic": synthetic or "false",
        },
        "1",
    )
    yield info
    tests = _Family("perfgate_tests", "gauge", "Selected tests, by verdict.")
    for words, number in counts(report).items():
        tests.add({"state": words, "synthetic": synthetic}, str(number))
    yield tests


def _of_tests(report: RunReport) -> Iterator[_Family]:
    verdicts = _Family("perfgate_verdict", "gauge", "1 for the verdict of a test.")
    families: dict[str, _Family] = {}
    for result in report.results:
        labels = {
            "scenario": result.scenario,
            "probe": result.probe or result.name,
            "synthetic": "true" if result.synthetic else "",
        }
        if result.verdict is not None:
            verdicts.add({**labels, "state": result.verdict.value}, "1")
        for one in _judged(result):
            _add(families, one, labels)
    yield verdicts
    yield from families.values()


def _judged(result: TestResult) -> list[MeasuredMetric]:
    """The metrics that gate, each once."""
    names = {one.metric for one in result.judgements}
    return [one for one in result.measured if one.metric in names]


def _add(families: dict[str, _Family], one: MeasuredMetric, labels: Mapping[str, str]) -> None:
    metric = known(one.metric)
    if metric is None or metric.unit not in _UNITS or not math.isfinite(one.value):
        return
    unit, factor = _UNITS[metric.unit]
    more: dict[str, str] = {}
    base, meaning = one.metric, metric.meaning
    if is_accuracy(one.metric):
        _, more["task"], more["metric"], more["filter"] = one.metric.split(":")
        base, meaning, step = "accuracy", "score of an evaluation", FINEST_SCORE
    else:
        step = one.value * max(FINEST, metric.family.sigma)
        if found := _STAT.fullmatch(one.metric):
            base, more["stat"] = found["name"], found["stat"]
            meaning = metric.meaning.partition(" ")[2]
        base = base.removesuffix("_ms").removesuffix("_s")
    name = f"perfgate_{base}_{unit}"
    help_ = f"{meaning[0].upper()}{meaning[1:]}; {metric.direction} is better."
    family = families.setdefault(name, _Family(name, "gauge", help_, unit))
    family.add({**labels, **more}, rounded(one.value * factor, step * factor))


def rounded(value: float, step: float) -> str:
    """The value in steps of 1, 2 or 5 times a power of ten, the largest of them up to `step`.

    Args:
        value: any finite number.
        step: what need not be told apart; up to 0: the value as it is.
    """
    if step <= 0:
        return f"{value:.6g}"
    power = math.floor(math.log10(step))
    lead = next(lead for lead in (5, 2, 1) if lead * 10.0**power <= step * (1 + 1e-9))
    told = round(value / (lead * 10.0**power)) * lead
    return f"{told * 10**power}" if power >= 0 else f"{told / 10**-power:.{-power}f}"


def _escaped(text: str) -> str:
    whole = visible(text)
    if len(whole) > _LONGEST:  # two long names stay two
        whole = f"{whole[:_LONGEST]}…{sha256(whole.encode()).hexdigest()[:8]}"
    return whole.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
