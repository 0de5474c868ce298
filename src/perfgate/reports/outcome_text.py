"""An outcome as text for a terminal: the table of metrics, where things are, how to do it again."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from perfgate.core.measurement import Change, MeasuredMetric
from perfgate.core.redaction import visible
from perfgate.core.verdict import Judgement, Mark
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.reports.figures import band, interval, number, signed, with_unit
from perfgate.reports.tables import text_table

# What the mark beside a verdict says, for people.
MARKS: Mapping[Mark, str] = {
    "HOST_SHIFT": "machine, not build: no worse than the baseline's build in this session, which "
    "is slower than its history too",
    "MACHINE": "the machine is not fit to judge on: too noisy, or even the baseline's build is "
    "slower than its history by far; measure again when it is idle, or elsewhere",
    "NO_CONTROL": "no control: the machine is not excluded",
}

# Those that a verdict cannot be read without.
_OF_MACHINE = ("HOST_SHIFT", "MACHINE")


def rows(
    judgements: Sequence[Judgement], marks: Collection[str] = _OF_MACHINE
) -> list[tuple[str, ...]]:
    """One row per metric, as `COLUMNS`; `marks` are those that stand beside a verdict."""
    found = []
    for judgement in judgements:
        against = " since the anchor" if judgement.against == "anchor" else ""
        verdict = "waived" if judgement.waiver else judgement.verdict.value
        verdict += f", {judgement.mark}" if judgement.mark in marks else ""
        found.append(row(judgement, against=against, allowed=band(judgement), verdict=verdict))
    return found


def row(
    one: Judgement | Change, *, against: str = "", allowed: str = "-", verdict: str
) -> tuple[str, ...]:
    """The row of a metric, as `COLUMNS`.

    Args:
        one: its numbers.
        against: what it is compared with where that is not the baseline.
        allowed: its band.
        verdict: what is said of it.
    """
    return (
        f"{with_unit(one.metric)}{against}",
        number(one.baseline),
        number(one.measured),
        signed(one.metric, one.change),
        interval(one),
        allowed,
        verdict,
    )


COLUMNS = ("metric", "baseline", "measured", "change", "interval", "band", "verdict")


def columns(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """The headings of `rows`: of an A/B the builds' names."""
    if any(judgement.against == "ab" for judgement in judgements):
        return ("metric", "A", "B", *COLUMNS[3:])
    return COLUMNS


NUMBERS = range(1, 6)  # the columns that are set to the right


def table(judgements: Sequence[Judgement]) -> str:
    """The metrics as a plain-text table."""
    return text_table(columns(judgements), rows(judgements), right=NUMBERS, ruled=True)


def render(outcome: Outcome, reproduce: str = "") -> str:
    """All a person needs to know of one outcome."""
    lines = [f"{outcome.verdict.value}: {outcome.probe.id}"]
    if outcome.injected:
        lines.append(f"injected: {', '.join(outcome.injected)}")
    if outcome.synthetic:
        lines.append("SYNTHETIC: a mock program made these numbers")
    if outcome.resumed_from:
        lines.append(resumed(outcome.resumed_from))
    if outcome.error is not None:
        lines.append(str(outcome.error))
    if outcome.judgements:
        lines += ["", table(outcome.judgements), ""]
        lines += reasons(outcome.judgements)
    elif outcome.reason:
        lines.append(outcome.reason)
    lines += [f"  note: {note}" for note in outcome.notes]
    lines += _identity(outcome)
    if outcome.folder is not None:
        lines.append(f"artifacts: {outcome.folder}")
    if reproduce:
        lines.append(f"rerun: {reproduce}")
    return visible("\n".join(lines))


def resumed(at: str) -> str:
    """That a verdict is of the session before, and not of this one."""
    return f"resumed from the session before, which recorded it {at}"


def _identity(outcome: Outcome) -> Iterator[str]:
    """What was measured, how often, and what it was compared with."""
    if outcome.build is not None:
        yield f"build: {outcome.build.description}"
    yield from (f"control: {control.description}" for control in outcome.controls)
    if outcome.extra_options:
        yield f"extra options: {outcome.extra_options}"
    yield from (f"setting: {setting}" for setting in outcome.settings)
    if outcome.compared_with:
        yield f"compared with: {outcome.compared_with}"
    if outcome.measurements:
        yield f"fresh starts: {len(outcome.measurements)}"


def reasons(judgements: Sequence[Judgement], bullet: str = "") -> Iterator[str]:
    """Why each metric has its verdict, what else is to know, and what lets it through."""
    for judgement in judgements:
        yield f"{bullet}{judgement.metric}: {judgement.reason}"
        yield from (f"  {bullet}note: {note}" for note in judgement.notes)
        if judgement.waiver:
            yield f"  {bullet}waived: {judgement.waiver}"


def brief(judgements: Sequence[Judgement], *, with_noise: bool = False) -> str:
    """The metrics and their changes in one line.

    Args:
        judgements: of the metrics.
        with_noise: what this session could show stands beside, where it measured its own noise.
    """
    return ", ".join(
        f"{judgement.metric} {signed(judgement.metric, judgement.change)}"
        + f" (interval {interval(judgement)}, band {band(judgement)})"
        * (with_noise and judgement.is_interleaved)
        + (" since the anchor" if judgement.against == "anchor" else "")
        + (" (waived)" if judgement.waiver else "")
        + (f" ({judgement.mark})" if judgement.mark in _OF_MACHINE else "")
        for judgement in judgements
        if judgement.change is not None
    )


MEASURED = ("metric", "value", "n", "change", "interval")
MEASURED_NUMBERS = range(1, 5)  # the columns that are set to the right


def measured_rows(
    measured: Sequence[MeasuredMetric], changes: Sequence[Judgement | Change]
) -> list[tuple[str, ...]]:
    """One row per metric, as `MEASURED`.

    Args:
        measured: the metrics.
        changes: how far those moved that were compared; the first of each metric counts.
    """
    moved = {change.metric: change for change in reversed(changes)}
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
