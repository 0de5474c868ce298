"""A comparison as text for a terminal, as Markdown, and as plain values for JSON."""

from typing import Any

from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict, worst
from perfgate.judging.comparison.comparison import Comparison, ProbeComparison
from perfgate.judging.comparison.sides import Side
from perfgate.reports.outcome_text import COLUMNS, NUMBERS, row, rows
from perfgate.reports.tables import markdown_table, text_table
from perfgate.reports.templating import REPORTS, environment
from perfgate.runs.exit_status import ExitStatus, exit_status

SCHEMA_VERSION = 1
SYNTHETIC = "SYNTHETIC: mock programs made numbers of this comparison; it proves nothing"
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
    ExitStatus.REHEARSED: "no regression was seen, but mock programs made the numbers, so "
    "nothing is claimed of any engine",
}


def status_of(comparison: Comparison) -> ExitStatus:
    """The exit status; numbers of mock programs never give 0."""
    verdicts = [probe.verdict for probe in comparison.probes]
    return exit_status(verdicts, gate=True, rehearsed=comparison.synthetic)


def text(comparison: Comparison, *, markdown: bool = False) -> str:
    """The comparison for a terminal, or as Markdown, for an issue or a pull request."""
    status = status_of(comparison)

    def table(probe: ProbeComparison) -> str:
        found = _rows(probe)
        if markdown:
            return "\n".join(markdown_table(_COLUMNS, found, right=NUMBERS) if found else ())
        return text_table(_COLUMNS, found, right=NUMBERS) if found else ""

    shown = environment(REPORTS).get_template("comparison.txt")
    return shown.render(
        comparison=comparison,
        markdown=markdown,
        synthetic=SYNTHETIC,
        sides=_sides(comparison),
        table=table,
        status=status,
        meaning=_MEANINGS[status],
    ).removesuffix("\n")


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
