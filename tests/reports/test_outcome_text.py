import re
from dataclasses import replace

from building import (
    judgement,
    lower_accuracy,
    outcome,
)
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.failures import FAILURES
from perfgate.core.measurement import MeasuredBuild, MeasuredControl
from perfgate.core.metrics import METRICS, accuracy_name
from perfgate.core.verdict import Verdict
from perfgate.reports.figures import number
from perfgate.reports.outcome_text import COLUMNS, render, rows, table


def cells(text: str) -> list[list[str]]:
    """The cells of a plain table, as a reader's eye takes them: two spaces part columns."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip(" ─")]


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


def test_a_regression_as_a_table() -> None:
    assert cells(table([judgement()])) == [
        list(COLUMNS),
        [
            "output_throughput [tokens/s]",
            "1234",
            "1083",
            "-12.3 %",
            "-14.0 … -10.5 %",
            "-2.0 %",
            "REGRESSION",
        ],
    ]


def test_accuracy_moves_in_points() -> None:
    (row,) = rows([lower_accuracy()])
    assert row[1:] == (
        "0.6667",
        "0.6167",
        "-5.0 points",
        "-9.0 … -1.0 points",
        "-5.0 points",
        "REGRESSION",
    )


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
    assert cells(table([long]))[1] == list(row)


def test_an_outcome_says_what_why_where_and_how_again() -> None:
    text = render(outcome(), reproduce="pytest 'perf_tests/test_serving.py::test_it[c4]'")
    lines = text.splitlines()
    assert lines[0] == "REGRESSION: small-serve-c4"
    assert table([judgement()]) in text
    assert lines[-6:] == [
        "output_throughput: 12.3 % lower, which is more than the band of 2.0 %",
        "build: llama.cpp 1.3.0, commit def456",
        "compared with: llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        "fresh starts: 2",
        "artifacts: /runs/one/small-serve/start-2-new/c4",
        "rerun: pytest 'perf_tests/test_serving.py::test_it[c4]'",
    ]


def test_an_error_has_evidence_and_next_step_and_no_table() -> None:
    error = RunError("oom", "the server ended", evidence=("CUDA out of memory",))
    failed = outcome(verdict=Verdict.ERROR, judgements=(), error=error, measurements=())
    text = render(replace(failed, compared_with=""))
    assert text.splitlines() == [
        "ERROR: small-serve-c4",
        "oom: the server ended",
        "  | CUDA out of memory",
        f"  next step: {FAILURES['oom'].next_step}",
        "build: llama.cpp 1.3.0, commit def456",
        "artifacts: /runs/one/small-serve/start-2-new/c4",
    ]


def test_what_was_injected_or_made_up_is_said_first() -> None:
    text = render(outcome(injected=("engine.settings.cpu_threads=1", "a=2"), synthetic=True))
    assert text.splitlines()[1:3] == [
        "injected: engine.settings.cpu_threads=1, a=2",
        "SYNTHETIC: a stand-in made these numbers",
    ]


def test_a_verdict_names_both_builds_and_its_mark() -> None:
    shifted = judgement(verdict=Verdict.PASS, mark="HOST_SHIFT", controls_used=2)
    control = MeasuredControl("baseline", MeasuredBuild("llama.cpp", "1.2.0", "abc123"), 2)
    of_anchor = MeasuredControl("anchor", None, 0, "its image is gone")
    told = render(
        outcome(verdict=Verdict.PASS, judgements=(shifted,), controls=(control, of_anchor))
    )
    assert "PASS, HOST_SHIFT" in told
    assert "\nbuild: llama.cpp 1.3.0, commit def456\n" in told
    assert "\ncontrol: llama.cpp 1.2.0, commit abc123, 2 starts\n" in told
    assert "\ncontrol: of the anchor: none (its image is gone)\n" in told


def test_what_is_not_known_is_a_dash() -> None:
    bare = judgement(baseline=None, measured=None, change=None, interval=None, band=None)
    assert rows([bare])[0][1:6] == ("-",) * 5
