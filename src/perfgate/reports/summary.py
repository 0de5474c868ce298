"""``summary.md``: a whole run for people, made from its records alone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfgate.campaign.resume import resuming_call
from perfgate.core.redaction import visible
from perfgate.core.verdict import MEANINGS, Verdict
from perfgate.machine.hardware import counted
from perfgate.reports.candidates import candidate_lines
from perfgate.reports.measured_text import (
    MEANING,
    MEASURED,
    MEASURED_NUMBERS,
    OF_JUDGED,
    WORSE_COLUMNS,
    WORSE_NUMBERS,
    documented_gaps,
    measured_rows,
    worse_rows,
)
from perfgate.reports.outcome_text import NUMBERS, columns, reasons, resumed, rows
from perfgate.reports.tables import markdown_table
from perfgate.reports.whole_run import (
    GROUP_COLUMNS,
    WORSE,
    group_rows,
    marked,
    not_for_time,
    probably_worse,
    resumptions,
    starts,
    suspicion,
    waived,
    waiver_faults,
    without_controls,
)
from perfgate.runs.exit_status import ExitStatus, meaning
from perfgate.runs.record import Record, SkippedRecord, VerdictRecord, records_of


def summary(facts: Mapping[str, Any], records: Sequence[Record], status: ExitStatus | None) -> str:
    """The run as Markdown.

    Args:
        facts: content of ``run.json``.
        records: the run's records, all kinds.
        status: how the run ended; None while it has not.
    """
    verdicts = records_of(VerdictRecord, records)
    lines = [
        *_head(facts, records, status),
        *_paragraphs(resumptions(records), starts(records), suspicion(records)),
        *_listed("Error rates", [*filter(None, [without_controls(records)])]),
        *_listed("Marked verdicts", [f"{mark}: {text}" for mark, text in marked(records)]),
        *_listed("Waivers that do not hold", waiver_faults(records)),
        *_listed("Waived losses", waived(records)),
        *_worse(records),
        *_listed("Recorded for a baseline", [*candidate_lines(records)]),
    ]
    for record in verdicts:
        lines += _verdict(record)
    late = not_for_time(records)
    others = [one for one in records_of(SkippedRecord, records) if one not in late]
    lines += _listed("Not run for lack of time", _reasons(late))
    lines += _listed("Not run", _reasons(others))
    return visible("\n".join([*lines, *_groups(records)]))


def _head(
    facts: Mapping[str, Any], records: Sequence[Record], status: ExitStatus | None
) -> list[str]:
    """How it ended, what it counts, where it was."""
    verdicts = records_of(VerdictRecord, records)
    skipped = records_of(SkippedRecord, records)
    machine = facts["machine"]
    counts = Counter(record.verdict.value for record in verdicts)
    if skipped:
        counts["skipped"] = len(skipped)
    lines = [f"# perfgate run {facts['id']}", ""]
    if status is not None:
        ends = [*(record.verdict for record in verdicts), *(None for _ in skipped)]
        lines += [f"**Exit status {status.value}**: {meaning(status, ends)}.", ""]
    else:
        lines += ["**The run has not ended, or was killed.** What follows had finished.", ""]
        lines += [f"To go on with it: `{resuming_call(facts)}`", ""]
    if facts.get("synthetic") or any(record.synthetic for record in verdicts):
        lines += ["**SYNTHETIC: stand-ins made numbers of this run; it proves nothing.**", ""]
    return [
        *lines,
        "Verdicts: " + (", ".join(f"{n} {name}" for name, n in counts.items()) or "none") + ".",
        *([f"PASS: {MEANINGS[Verdict.PASS]}."] if counts[Verdict.PASS.value] else []),
        "",
        f"Machine: {machine['host']}, {machine['cores']} cores of {machine['cpu']}, "
        + (counted(gpu["name"] for gpu in machine["gpus"]) or "no GPU")
        + f". Started {facts['started']}.",
        "",
        *_site_commands(facts),
        *(
            [f"Measured values: {MEANING}; {OF_JUDGED}.", ""]
            if any(record.measured for record in verdicts)
            else []
        ),
    ]


def _site_commands(facts: Mapping[str, Any]) -> Iterator[str]:
    for key, calls in facts.get("site_commands", {}).items():
        yield f"Commands {key} each start: `{calls}`"
        yield ""


def _paragraphs(resumed: Sequence[str], starts: str, suspicion: str) -> list[str]:
    """What is said of the run as a whole, a paragraph each."""
    lines = []
    for one in resumed:
        lines += [one, ""]
    if starts:
        lines += [f"{starts[0].upper()}{starts[1:]}.", ""]
    if suspicion:
        lines += [f"**Suspicion:** {suspicion}", ""]
    return lines


def _listed(title: str, found: Sequence[str]) -> list[str]:
    """A section with a list; nothing if that is empty."""
    return [f"## {title}", "", *(f"- {one}" for one in found), ""] if found else []


def _reasons(skipped: Sequence[SkippedRecord]) -> list[str]:
    return [f"`{record.name}`: {record.reason}" for record in skipped]


def _groups(records: Sequence[Record]) -> list[str]:
    """The table of the groups' fresh starts; nothing if no group has ended."""
    groups = group_rows(records)
    if not groups:
        return []
    return [
        "## Fresh starts",
        "",
        *markdown_table(GROUP_COLUMNS, groups, right=range(1, len(GROUP_COLUMNS) - 1)),
        "",
    ]


def _verdict(record: VerdictRecord) -> list[str]:
    mark = "synthetic " if record.synthetic else ""
    lines = [f"## {mark}{record.verdict}: `{record.name}`", ""]
    if record.resumed_from:
        lines += [f"R{resumed(record.resumed_from).removeprefix('r')}.", ""]
    if record.injected:
        lines += [f"Injected: {', '.join(record.injected)}.", ""]
    if record.error:
        error = record.error
        lines += [f"{error.error_class}: {error.message}", ""]
        lines += [f"    {line}" for line in error.evidence]
        lines += ["", f"Next step: {error.next_step}.", ""]
    judgements = record.judgements
    if judgements:
        lines += [*markdown_table(columns(judgements), rows(judgements), right=NUMBERS), ""]
        lines += reasons(judgements, "- ")
        lines += [f"- note: {note}" for note in record.notes]
        lines.append("")
    elif record.reason:
        lines += [record.reason, ""]
    return [*lines, *_identity(record), *_measured(record)]


def _identity(record: VerdictRecord) -> list[str]:
    """The build under test, what it was compared with, and after how many starts."""
    build = record.build
    told = [] if build is None else [f"- build: {build.in_words}"]
    told += [f"- control: {one.in_words}" for one in record.controls]
    if record.extra_options:
        told.append(f"- extra options: `{record.extra_options}`")
    told += [f"- setting: {one}" for one in record.settings]
    if record.compared_with:
        told.append(f"- compared with: {record.compared_with}")
    if gaps := documented_gaps(record):
        told.append(f"- {gaps}")
    if record.starts:
        told.append(f"- fresh starts: {record.starts}")
    return [*told, ""] if told else []


def _measured(record: VerdictRecord) -> list[str]:
    """The table of every measured metric, judged or not; nothing if there is none."""
    measured = record.measured
    if not measured:
        return []
    mark = "Synthetic values" if record.synthetic else "Measured"
    rows = measured_rows(measured, (*record.judgements, *record.observed))
    return [f"{mark}:", "", *markdown_table(MEASURED, rows, right=MEASURED_NUMBERS), ""]


def _worse(records: Sequence[Record]) -> list[str]:
    """The table of what probably got worse; nothing if there is nothing."""
    worse = worse_rows(probably_worse(records))
    if not worse:
        return []
    table = markdown_table(WORSE_COLUMNS, worse, right=WORSE_NUMBERS)
    return [f"## {WORSE[0].upper()}{WORSE[1:]}", "", *table, ""]
