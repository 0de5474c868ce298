"""``summary.md``: a whole run for people, made from its records alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from perfgate.exit_status import ExitStatus, meaning
from perfgate.gate.verdict import Judgement, Verdict, counted
from perfgate.records import name_of
from perfgate.reports.outcome_text import COLUMNS, rows
from perfgate.reports.whole_run import suspicion, waived, waiver_faults, warnings


def summary(
    facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]], status: ExitStatus | None
) -> str:
    """The run as Markdown.

    Args:
        facts: content of ``run.json``.
        records: the run's records, all kinds.
        status: how the run ended; None while it has not.
    """
    verdicts = [record for record in records if record["record"] == "verdict"]
    skipped = [record for record in records if record["record"] == "skipped"]
    machine = facts["machine"]
    counts = Counter(record["verdict"] for record in verdicts)
    if skipped:
        counts["skipped"] = len(skipped)
    lines = [f"# perfgate run {facts['id']}", ""]
    if status is not None:
        ends = [*(Verdict(record["verdict"]) for record in verdicts), *(None for _ in skipped)]
        lines += [f"**Exit status {status.value}**: {meaning(status, ends)}.", ""]
    else:
        lines += ["**The run has not ended, or was killed.** What follows had finished.", ""]
    if facts.get("synthetic") or any(record.get("synthetic") for record in verdicts):
        lines += ["**SYNTHETIC: stand-ins made numbers of this run; it proves nothing.**", ""]
    lines += [
        "Verdicts: " + (", ".join(f"{n} {name}" for name, n in counts.items()) or "none") + ".",
        "",
        f"Machine: {machine['host']}, {machine['cores']} cores of {machine['cpu']}, "
        + (f"{len(machine['gpus'])} GPUs" if machine["gpus"] else "no GPU")
        + f". Started {facts['started']}.",
        "",
    ]
    if told := suspicion(records):
        lines += [f"**Suspicion:** {told}", ""]
    for title, found in (
        ("Waivers that do not hold", waiver_faults(records)),
        ("Waived losses", waived(records)),
        ("Probably worse, though nothing depends on it", warnings(records)),
    ):
        if found:
            lines += [f"## {title}", "", *(f"- {one}" for one in found), ""]
    for record in verdicts:
        lines += _verdict(record)
    if skipped:
        lines += ["## Not run", ""]
        lines += [f"- `{name_of(record)}`: {record['reason']}" for record in skipped]
        lines.append("")
    return "\n".join(lines)


def _verdict(record: Mapping[str, Any]) -> list[str]:
    mark = "synthetic " if record.get("synthetic") else ""
    lines = [f"## {mark}{record['verdict']}: `{name_of(record)}`", ""]
    if record["injected"]:
        lines += [f"Changed on purpose: {', '.join(record['injected'])}.", ""]
    if record["error"]:
        error = record["error"]
        lines += [f"{error['class']}: {error['message']}", ""]
        lines += [f"    {line}" for line in error["evidence"]]
        lines += ["", f"Next step: {error['next_step']}.", ""]
    judgements = [as_judgement(plain) for plain in record["judgements"]]
    if judgements:
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---|--:|--:|--:|--:|--:|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows(judgements)]
        lines.append("")
        for one in judgements:
            lines.append(f"- {one.metric}: {one.reason}")
            lines += [f"  - note: {note}" for note in one.notes]
            lines += [f"  - waived: {one.waiver}"] if one.waiver else []
        lines += [f"- note: {note}" for note in record["notes"]]
        lines += [
            "",
            f"{counted(record['starts'], 'fresh start')}, compared with {record['compared_with']}.",
            "",
        ]
    elif record["reason"]:
        lines += [record["reason"], ""]
    return lines


def as_judgement(plain: Mapping[str, Any]) -> Judgement:
    """A judgement read back from a record."""
    values = dict(plain)
    values["verdict"] = Verdict(values["verdict"])
    values["notes"] = tuple(values["notes"])
    if values["interval"] is not None:
        values["interval"] = tuple(values["interval"])
    return Judgement(**values)
