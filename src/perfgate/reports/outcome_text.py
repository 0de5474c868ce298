"""An outcome as text for a terminal: the table of metrics, where things are, how to do it again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfgate.campaign.resume import judgements_of
from perfgate.core.measured import Change
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.redaction import visible
from perfgate.core.verdict import Judgement, Mark
from perfgate.judging.assembly.outcome import Outcome
from perfgate.reports.tables import text_table


def number(value: float | None) -> str:
    """A value with four significant digits, thousands never in scientific notation."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 9999.5 else f"{value:.4g}"


def interval(one: Judgement | Change) -> str:
    """The interval of the change, in the change's unit."""
    if one.interval is None:
        return "-"
    low, high = one.interval
    return f"{_points(low)} … {signed(one.metric, high)}"


def band(judgement: Judgement) -> str:
    """How far the metric may move in its bad direction."""
    if judgement.band is None:
        return "-"
    sign = "-" if lookup(judgement.metric).direction == "higher" else "+"
    return f"{sign}{100 * judgement.band:.1f} {_unit(judgement.metric)}"


def signed(metric: str, value: float | None) -> str:
    """A change as a signed percentage; of an accuracy as points."""
    return "-" if value is None else f"{_points(value)} {_unit(metric)}"


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # never -0.0


def _unit(metric: str) -> str:
    return "points" if is_accuracy(metric) else "%"


def rows(judgements: Sequence[Judgement]) -> list[tuple[str, ...]]:
    """One row per metric, as `COLUMNS`."""
    found = []
    for one in judgements:
        against = " since the anchor" if one.against == "anchor" else ""
        verdict = "waived" if one.waiver else one.verdict.value
        verdict += f", {one.mark}" if one.mark in _OF_MACHINE else ""
        found.append(row(one, against=against, allowed=band(one), verdict=verdict))
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
        f"{one.metric} [{lookup(one.metric).unit}]{against}",
        number(one.baseline),
        number(one.measured),
        signed(one.metric, one.change),
        interval(one),
        allowed,
        verdict,
    )


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

COLUMNS = ("metric", "baseline", "measured", "change", "interval", "band", "verdict")


def columns(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """The headings of `rows`: of an A/B the builds' names."""
    if any(one.against == "ab" for one in judgements):
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
        lines.append("SYNTHETIC: a stand-in made these numbers")
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
        yield f"build: {outcome.build.in_words}"
    yield from (f"control: {one.in_words}" for one in outcome.controls)
    if outcome.extra_options:
        yield f"extra options: {outcome.extra_options}"
    yield from (f"setting: {one}" for one in outcome.settings)
    if outcome.compared_with:
        yield f"compared with: {outcome.compared_with}"
    if outcome.measurements:
        yield f"fresh starts: {len(outcome.measurements)}"


def reasons(judgements: Sequence[Judgement], bullet: str = "") -> Iterator[str]:
    """Why each metric has its verdict, what else is to know, and what lets it through."""
    for one in judgements:
        yield f"{bullet}{one.metric}: {one.reason}"
        yield from (f"  {bullet}note: {note}" for note in one.notes)
        if one.waiver:
            yield f"  {bullet}waived: {one.waiver}"


def brief(judgements: Sequence[Judgement]) -> str:
    """The metrics and their changes in one line."""
    return ", ".join(
        f"{one.metric} {signed(one.metric, one.change)}"
        + (" since the anchor" if one.against == "anchor" else "")
        + (" (waived)" if one.waiver else "")
        + (f" ({one.mark})" if one.mark in _OF_MACHINE else "")
        for one in judgements
        if one.change is not None
    )


def resolution(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """What a machine that measures its own noise can show at best; empty where none did.

    Args:
        verdicts: records of verdicts, with the bands as declared in what they rest on.
    """
    widest: dict[str, Judgement] = {}
    for line in verdicts:
        tests = (line.get("judge_input") or {}).get("tests", ())
        declared = {one["metric"]: one["band"] for one in tests if _may_be_widened(one)}
        for one in judgements_of(line):
            wide = one.band or 0.0
            if wide > declared.get(one.metric, wide) * (1 + 1e-9) and wide > (
                widest[one.metric].band or 0.0 if one.metric in widest else 0.0
            ):
                widest[one.metric] = one
    return ", ".join(f"{name} {band(one)}" for name, one in widest.items())


def _may_be_widened(test: Mapping[str, Any]) -> bool:
    """Whether the machine's own noise may widen the band of a test, which then has one."""
    own = test["kind"] == "InterleavedTest" or test.get("noise", {}).get("widen", False)
    return bool(own) and test["band"] is not None
