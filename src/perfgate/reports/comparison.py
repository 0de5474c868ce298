"""A comparison as text for a terminal, as Markdown, and as plain values for JSON."""

from collections.abc import Iterator
from typing import Any

from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.core.verdict import Verdict, counted, worst
from perfgate.judging.comparison.comparison import Comparison, ProbeComparison
from perfgate.judging.comparison.sides import Side
from perfgate.reports.outcome_text import COLUMNS, NUMBERS, row, rows
from perfgate.reports.tables import markdown_table, text_table
from perfgate.runs.exit_status import ExitStatus, exit_status

SCHEMA_VERSION = 1
SYNTHETIC = "SYNTHETIC: stand-ins made numbers of this comparison; it proves nothing"
_COLUMNS = ("metric", "A", "B", *COLUMNS[3:])
_OF_A_SIDE = ("path", "kind", "description", "synthetic", "injected")
_REPORTED = "reported"
_WARNED = "reported, a loss"
_MEANINGS = {
    ExitStatus.PASSED: "whatever both sides have passed",
    ExitStatus.REGRESSION: "at least one regression",
    ExitStatus.INCONCLUSIVE: "the fresh starts given do not decide between pass and regression",
    ExitStatus.ERROR: "a probe of one side failed, so that it has no numbers to compare",
    ExitStatus.NOT_JUDGED: "something that both sides have could not be compared, or they have "
    "nothing in common",
    ExitStatus.REHEARSED: "no regression was seen, but stand-ins made the numbers, so nothing is "
    "claimed of any engine",
}


def status_of(comparison: Comparison) -> ExitStatus:
    """The exit status; numbers of stand-ins never give 0."""
    verdicts = [probe.verdict for probe in comparison.probes]
    return exit_status(verdicts, gate=True, rehearsed=comparison.synthetic)


def text(comparison: Comparison) -> str:
    """The comparison for a terminal."""
    return visible("\n".join(_lines(comparison, markdown=False)))


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, for an issue or a pull request."""
    return visible("\n".join(["# perfgate compare", "", *_lines(comparison, markdown=True)]))


def _lines(comparison: Comparison, *, markdown: bool) -> Iterator[str]:
    heading, bullet, code = ("## ", "- ", "`") if markdown else ("", "", "")
    if comparison.synthetic:
        yield from [f"**{SYNTHETIC}.**", ""] if markdown else [SYNTHETIC]
    for name, role, side in _sides(comparison):
        yield f"{bullet}{name} ({role}): {code}{side.path}{code}: {side.description}"
    for probe in comparison.probes:
        yield from ("", f"{heading}{probe.verdict.value}: {code}{probe.name}{code}")
        if markdown:
            yield ""
        table = _rows(probe)
        if table and markdown:
            yield from (*markdown_table(_COLUMNS, table, right=NUMBERS), "")
        elif table:
            yield from ("", text_table(_COLUMNS, table, right=NUMBERS), "")
        yield from (f"{bullet}{one}" for one in _sentences(probe))
    yield ""
    yield from (f"{bullet}{one}" for one in _ending(comparison))


def plain(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values; fields are only ever added."""
    # Without any probe there is nothing to compare.
    verdicts = [probe.verdict for probe in comparison.probes] or [Verdict.NOT_COMPARABLE]
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": worst(verdicts).value,
        "exit_status": status_of(comparison).value,
        "synthetic": comparison.synthetic,
        "sides": {
            name.lower(): {field: to_plain(getattr(side, field)) for field in _OF_A_SIDE}
            for name, _, side in _sides(comparison)
        },
        "probes": [_plain_probe(probe) for probe in comparison.probes],
        "only_in_a": list(comparison.only_in_a),
        "only_in_b": list(comparison.only_in_b),
        "warnings": list(comparison.warnings),
    }


def _plain_probe(probe: ProbeComparison) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(probe)
    warned = plain.pop("warned")
    plain["starts"] = dict(zip("ab", probe.starts, strict=True))
    for change in plain["reported"]:
        change["warned"] = change["metric"] in warned
    return plain


def _sides(comparison: Comparison) -> list[tuple[str, str, Side]]:
    return [("A", "reference", comparison.a), ("B", "new", comparison.b)]


def _rows(probe: ProbeComparison) -> list[tuple[str, ...]]:
    """One row per metric: the judged ones, then those that are only reported."""
    reported = [
        row(one, verdict=_WARNED if one.metric in probe.warned else _REPORTED)
        for one in probe.reported
    ]
    return [*rows(probe.judgements), *reported]


def _sentences(probe: ProbeComparison) -> Iterator[str]:
    """What the table cannot say, a sentence each."""
    if probe.reason:
        yield probe.reason
    for one in probe.judgements:
        yield f"{one.metric}: {one.reason}"
        yield from (f"note on {one.metric}: {note}" for note in one.notes)
    if probe.warned:
        yield (
            f"warning: {counted(len(probe.warned), 'reported metric')} marked {_WARNED!r}: "
            "of such losses nine in ten are real on average"
        )
    yield from (f"warning: {one}" for one in probe.warnings)
    yield from (f"meant to differ: {one}" for one in probe.across)
    yield from _only_in_one(probe)
    if probe.judgements:
        of_a, of_b = (counted(starts, "fresh start") for starts in probe.starts)
        yield f"A: {of_a}, B: {of_b}"


def _only_in_one(result: Comparison | ProbeComparison) -> Iterator[str]:
    """The probes, or the metrics of a probe, that only one side has."""
    for side, names in (("A", result.only_in_a), ("B", result.only_in_b)):
        if names:
            yield f"only in {side}, not compared: {', '.join(names)}"


def _ending(comparison: Comparison) -> Iterator[str]:
    yield from _only_in_one(comparison)
    yield from (f"warning: {one}" for one in comparison.warnings)
    status = status_of(comparison)
    yield f"exit status {status.value}: {_MEANINGS[status]}"
