"""Figures of a metric: one way to weigh a loss, and no crash of a metric that the table lacks."""

import math
import re
from dataclasses import replace

import pytest
from building import judgement
from night_runs import SPEED, judged, outputs, run_of, verdict
from plain_records import record
from run_reports import report, result
from tables import each

from perfgate.core.measurement import Change
from perfgate.core.metrics import METRICS, accuracy_name
from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.figures import loss_in_bands, number
from perfgate.reports.outcome_text import rows, table
from perfgate.reports.overview import findings, metrics
from perfgate.runs.exit_status import ExitStatus

_UNKNOWN = "speed_of_a_newer_build"


@each(
    ("changes", "bands"),
    [
        ({"change": -0.05, "band": 0.02}, 2.5),
        ({"change": 0.05, "band": 0.02}, -2.5),
        ({"change": 0.05, "band": 0.02, "metric": "ttft_p99_ms"}, 2.5),
        ({"change": -0.05, "band": 0.0}, math.inf),
        ({"change": 0.05, "band": 0.0}, -math.inf),
        ({"change": 0.0, "band": 0.0}, 0.0),
        ({"change": -0.05, "band": None}, None),
        ({"change": None, "band": 0.02}, None),
        ({"change": -0.05, "band": 0.02, "metric": _UNKNOWN}, None),
    ],
)
def test_a_loss_in_bands(changes: dict[str, object], bands: float | None) -> None:
    assert loss_in_bands(judgement(**changes)) == (None if bands is None else pytest.approx(bands))


# The largest loss first; a loss over a band of zero before all, one without a band after all.
_LOSSES = [
    judgement(change=-0.01, band=0.0),
    judgement(change=-0.30, band=0.1),
    judgement(change=-0.04, band=0.02),
    judgement(change=0.09, band=0.02),
    judgement(change=-0.5, band=None),
]


def _order(found: list[Judgement]) -> list[int]:
    return [_LOSSES.index(replace(one, verdict=Verdict.REGRESSION)) for one in found]


@each("verdict_", [Verdict.REGRESSION, Verdict.INCONCLUSIVE])
def test_every_report_has_the_largest_loss_in_bands_first(verdict_: Verdict) -> None:
    shuffled = [replace(_LOSSES[place], verdict=verdict_) for place in (4, 2, 0, 3, 1)]
    made = report(result(0, verdict_, judgements=tuple(shuffled)))
    listed = [one.judgement for one in findings(made, verdict_) if one.judgement]
    assert _order(listed) == [0, 1, 2, 3, 4]
    assert _order([one.judgement for one in metrics(made, verdict_) if one.judgement]) == [
        *range(5)
    ]


def test_the_largest_gain_is_the_first_improvement() -> None:
    gains = [judgement(verdict=Verdict.IMPROVEMENT, change=one) for one in (0.05, 0.09, 0.07)]
    made = report(result(0, Verdict.IMPROVEMENT, judgements=tuple(gains)))
    listed = [one.judgement for one in findings(made, Verdict.IMPROVEMENT) if one.judgement]
    assert [one.change for one in listed] == [0.09, 0.07, 0.05]
    assert metrics(made, Verdict.IMPROVEMENT) == findings(made, Verdict.IMPROVEMENT)


def test_a_metric_that_the_table_lacks_is_shown_without_direction() -> None:
    lost = replace(judged(SPEED, Verdict.REGRESSION, -0.04), metric=_UNKNOWN)
    observed = Change(_UNKNOWN, 10.0, 12.0, 0.2, (0.15, 0.25), 2, 1e-9)
    line = verdict("r1-c1", Verdict.REGRESSION, lost, observed=[observed])
    end = record("ended", status=ExitStatus.REGRESSION.value)
    for name, text in outputs(run_of([line], end)).items():
        assert _UNKNOWN in text, name


@each(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.66667, "0.6667"),
        (12.3456, "12.35"),
        (999.96, "1000"),
        (1234.5, "1234"),
        (9999.4, "9999"),
        (9999.5, "10,000"),
        (10000.0, "10,000"),
        (43146.4, "43,146"),
        (-43146.4, "-43,146"),
        (1.5e7, "15,000,000"),
    ],
)
def test_numbers_have_four_digits_and_no_exponent(value: float | None, text: str) -> None:
    assert number(value) == text


@each(
    "metric", [*METRICS, accuracy_name("global_mmlu_full_en_high_school", "exact_match", "strict")]
)
def test_no_cell_is_cut_or_taken_for_markup(metric: str) -> None:
    long = judgement(
        metric=metric,
        verdict=Verdict.NOT_COMPARABLE,
        baseline=12345678.0,
        measured=12345678.0,
        interval=(-0.1234, 0.1234),
    )
    (row,) = rows([long])
    _, _, line = table([long]).splitlines()
    assert re.split(r"\s{2,}", line.strip()) == list(row)
