"""Measured values as text: every metric with its unit and the fresh starts behind it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfgate.campaign.resume import build_of, controls_of, judgements_of, measured_of
from perfgate.core.measured import Change, MeasuredMetric
from perfgate.core.metrics import lookup
from perfgate.core.verdict import Judgement, counted
from perfgate.judging.assembly.measured_facts import is_limit
from perfgate.reports.outcome_text import interval, number, signed
from perfgate.reports.tables import text_table
from perfgate.runs.records import name_of

Record = Mapping[str, Any]

MEASURED = ("metric", "value", "n", "change", "interval")
MEASURED_NUMBERS = range(1, 5)  # the columns that are set to the right
MEANING = "geometric mean of n fresh starts, of an accuracy the mean"
OF_JUDGED = "of a judged metric the starts that the gate used"

_MAIN = 2  # metrics of a probe that the terminal shows where fewer are judged
_SCREEN = 24  # rows that a terminal shows at once, beside what else a run says
_FEW = 5  # a longer list is a table, or is in summary.md


def measured_rows(
    measured: Sequence[MeasuredMetric], changes: Sequence[Judgement | Change]
) -> list[tuple[str, ...]]:
    """One row per metric, as `MEASURED`.

    Args:
        measured: the metrics.
        changes: how far those moved that were compared; the first of each metric counts.
    """
    moved: dict[str, Judgement | Change] = {}
    for one in changes:
        moved.setdefault(one.metric, one)
    return [
        (
            f"{one.metric} [{one.unit}]",
            number(one.value),
            str(one.n),
            signed(one.metric, moved[one.metric].change) if one.metric in moved else "-",
            interval(moved[one.metric]) if one.metric in moved else "-",
        )
        for one in measured
    ]


def main_metrics(
    measured: Sequence[MeasuredMetric], judgements: Sequence[Judgement]
) -> Sequence[MeasuredMetric]:
    """The metrics to name first: those that were judged, else the first ones of the gate."""
    judged = {one.metric for one in judgements}
    return measured[: max(_MAIN, sum(one.metric in judged for one in measured))]


def measured_lines(verdicts: Sequence[Record]) -> Iterator[str]:
    """The main metrics of every probe, folded to a screen of a terminal; nothing without any.

    Args:
        verdicts: the records of a run's verdicts.
    """
    rows: list[tuple[str, ...]] = []
    values = 0
    for line in verdicts:
        measured = measured_of(line)
        values += len(measured)
        name = f"{'synthetic ' if line['synthetic'] else ''}{name_of(line)}"
        rows += [
            (name, one.metric, number(one.value), one.unit, str(one.n))
            for one in main_metrics(measured, judgements_of(line))
        ]
    shown = rows[:_SCREEN]
    if shown:
        yield f"measured, {MEANING}:"
        columns = ("probe", "metric", "value", "unit", "n")
        yield from text_table(columns, shown, right=(2, 4)).splitlines()
    if values > len(shown):
        yield f"and {counted(values - len(shown), 'more value')} in summary.md"


def documented_gaps(line: Record) -> str:
    """How far a test is from each documented value that is not judged; empty: there is none."""
    judged = {one.metric for one in judgements_of(line)}
    gaps = ", ".join(
        f"{one['metric']} {signed(one['metric'], one['change'])}"
        for one in line.get("documented", ())
        if one["metric"] not in judged and one["change"] is not None
    )
    return f"not judged, against the document: {gaps}" if gaps else ""


def identity_lines(verdicts: Sequence[Record]) -> Iterator[str]:
    """The builds, their settings that were not in force or bounded, their controls and what they
    were compared with, each once; few of them.
    """
    builds = [build.in_words for line in verdicts if (build := build_of(line)) is not None]
    yield from _few("build", builds)
    yield from _few("setting", _settings(verdicts))
    controls = [one.in_words for line in verdicts for one in controls_of(line)]
    yield from _few("control", controls)
    yield from _few("compared with", [line["compared_with"] for line in verdicts])


def _settings(verdicts: Sequence[Record]) -> list[str]:
    """The lines on settings, each once with the scenarios that it is of, those on limits last."""
    scenarios: dict[str, dict[str, None]] = {}
    for line in verdicts:
        for one in line.get("settings", ()):
            scenarios.setdefault(one, {})[line["scenario"]] = None
    lines = []
    for one in sorted(scenarios, key=is_limit):
        first, *others = scenarios[one]
        lines.append(f"{first}{f' and {len(others)} more' if others else ''}: {one}")
    return lines


def _few(title: str, texts: Sequence[str]) -> Iterator[str]:
    different = [one for one in dict.fromkeys(texts) if one]
    for one in different[:_FEW]:
        yield f"{title}: {one}"
    if len(different) > _FEW:
        yield f"{title}: {len(different) - _FEW} more in summary.md"


def worse_rows(worse: Sequence[tuple[str, Change]]) -> list[tuple[str, ...]]:
    """One row per metric that probably got worse, as `WORSE_COLUMNS`."""
    return [
        (
            name,
            f"{one.metric} [{lookup(one.metric).unit}]",
            number(one.baseline),
            number(one.measured),
            signed(one.metric, one.change),
        )
        for name, one in worse
    ]


WORSE_COLUMNS = ("probe", "metric", "baseline", "measured", "change")
WORSE_NUMBERS = (2, 3, 4)


def worse_lines(worse: Sequence[tuple[str, Change]]) -> Iterator[str]:
    """The metrics that probably got worse for a terminal: the likeliest few."""
    rows = worse_rows(worse[:_FEW])
    yield from text_table(WORSE_COLUMNS, rows, right=WORSE_NUMBERS).splitlines()
    if len(worse) > _FEW:
        yield f"and {len(worse) - _FEW} more in summary.md"
