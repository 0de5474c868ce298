"""Metric rows: every metric of a test as texts: measured, judged, only reported, or documented."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfgate.core.measured import Change
from perfgate.core.verdict import Against, Judgement
from perfgate.reports.outcome_text import interval, number, signed
from perfgate.reports.overview import allowed, known
from perfgate.reports.page.signs import REPORTED, Sign, judgement_sign
from perfgate.reports.run_report import DocumentedMetric, TestResult

AGAINST: Mapping[Against, str] = {
    "baseline": "",
    "anchor": "since the anchor",
    "documented": "against the document",
    "claim": "of the claim",
    "ab": "B against A",
}


@dataclass(frozen=True)
class MetricRow:
    """One metric against one reference.

    Attributes:
        metric: its name.
        unit: of the values.
        against: what it is compared with where that is not the baseline.
        value, starts, baseline, change, interval, band: as texts; `-`: there is none.
        documented: the document's value; empty: it names none.
        sign: of its verdict; None: it was neither judged nor compared.
        mark: what beside the build the verdict speaks of.
        controls: fresh starts of the other build behind it.
    """

    metric: str
    unit: str
    against: str
    value: str
    starts: str
    baseline: str
    change: str
    interval: str
    band: str
    documented: str
    sign: Sign | None
    mark: str
    controls: int


def metric_rows(result: TestResult) -> tuple[MetricRow, ...]:
    """The rows of a test: judged metrics first, each reference in a row of its own."""
    return tuple(_rows(result))


def _rows(result: TestResult) -> Iterator[MetricRow]:
    measured = {one.metric: one for one in result.measured}
    documented = {one.metric: one for one in result.documented}
    for judgement in result.judgements:
        yield _row(result, judgement.metric, judgement)
    judged = {one.metric for one in result.judgements}
    reported = {one.metric: one for one in result.observed if one.metric not in judged}
    for metric in dict.fromkeys([*measured, *reported, *documented]):
        if metric not in judged:
            yield _row(result, metric, reported.get(metric))


def _row(result: TestResult, metric: str, one: Judgement | Change | None) -> MetricRow:
    measured = next((known for known in result.measured if known.metric == metric), None)
    told = next((known for known in result.documented if known.metric == metric), None)
    judged = one if isinstance(one, Judgement) else None
    value = measured.value if measured is not None else one.measured if one is not None else None
    starts = measured.n if measured is not None else one.runs_used if one is not None else 0
    return MetricRow(
        metric=metric,
        unit=measured.unit if measured is not None else unit_of(metric),
        against="" if judged is None else AGAINST[judged.against],
        value=number(value),
        starts=str(starts or "-"),
        baseline="-" if one is None else number(one.baseline),
        change="-" if one is None else signed(metric, one.change),
        interval="-" if one is None else interval(one),
        band="-" if judged is None else allowed(judged),
        documented="" if told is None else number(told.value) + _gap(told),
        sign=judgement_sign(judged) if judged is not None else None if one is None else REPORTED,
        mark="" if judged is None else judged.mark,
        controls=0 if judged is None else judged.controls_used,
    )


def _gap(told: DocumentedMetric) -> str:
    """How far the measured value is from a documented one."""
    return "" if told.change is None else f" ({signed(told.metric, told.change)})"


def unit_of(metric: str) -> str:
    """The unit of a metric; empty: it is none that this perfgate knows."""
    found = known(metric)
    return "" if found is None else found.unit


def loss(one: Judgement | Change) -> float | None:
    """How far it moved in its bad direction, as a fraction; below 0: it got better.

    None: it has no change, or nobody knows which direction is bad.
    """
    metric = known(one.metric)
    if metric is None or one.change is None:
        return None
    return -one.change if metric.direction == "higher" else one.change


@dataclass(frozen=True)
class Gauge:
    """An interval against a band on one line, in percent of its width; worse is to the left.

    Attributes:
        zero, band, low, high, middle: places.
    """

    zero: float
    band: float
    low: float
    high: float
    middle: float


def gauge(judgement: Judgement) -> Gauge | None:
    """The picture of a judgement; None: it has no interval or no band."""
    change, bounds = judgement.change, judgement.interval
    metric = known(judgement.metric)
    if metric is None or change is None or bounds is None or not judgement.band:
        return None
    sign = 1 if metric.direction == "higher" else -1
    low, high = sorted((sign * bounds[0], sign * bounds[1]))
    middle, edge = sign * change, -judgement.band
    reach = 1.15 * max(2 * judgement.band, min(abs(low), 6 * judgement.band), abs(middle))
    reach = min(reach, 12 * judgement.band)

    def place(at: float) -> float:
        return round(min(100.0, max(0.0, 50 * (1 + at / reach))), 1)

    return Gauge(place(0.0), place(edge), place(low), place(high), place(middle))
