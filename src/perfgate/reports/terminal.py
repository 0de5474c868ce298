"""The end of a run on the terminal: one line per verdict, what was skipped, the exit status."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfgate.campaign.resume import judgements_of
from perfgate.gate.verdict import Judgement, Verdict
from perfgate.reports.outcome_text import brief, resolution
from perfgate.reports.whole_run import starts, suspicion, waived, waiver_faults, warnings
from perfgate.runs.records import name_of
from perfgate.verdicts.exit_status import ExitStatus, meaning


def terminal_lines(
    records: Sequence[Mapping[str, Any]], status: ExitStatus | None
) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is good news; numbers of stand-ins never are.

    Args:
        records: the run's records, all kinds.
        status: how the run ended; None if it was broken off.
    """
    every: list[Judgement] = []
    verdicts = [line for line in records if line["record"] == "verdict"]
    skipped = [line for line in records if line["record"] == "skipped"]
    for line in verdicts:
        verdict = Verdict(line["verdict"])
        judgements = judgements_of(line)
        every += judgements
        detail = brief(judgements) or line["reason"] or line["error"]["message"]
        good = verdict in (Verdict.PASS, Verdict.IMPROVEMENT) and not line["synthetic"]
        mark = "synthetic " if line["synthetic"] else ""
        yield f"{mark}{verdict:14} {name_of(line)}: {detail}", good
    for line in skipped:
        yield f"{'skipped':14} {name_of(line)}: {line['reason']}", False
    if smallest := resolution(every):
        yield (
            f"compared with itself, this machine now shows no loss smaller than: {smallest}",
            False,
        )
    for text in waived(records):
        yield f"{'waived':14} {text}", False
    for text in waiver_faults(records):
        yield f"{'waiver':14} {text}", False
    if worse := warnings(records):
        yield f"probably worse, though nothing depends on it: {', '.join(worse)}", False
    if text := starts(records):
        yield text, False
    if text := suspicion(records):
        yield f"suspicion: {text}", False
    if status is not None:
        ends = [*(Verdict(line["verdict"]) for line in verdicts), *(None for _ in skipped)]
        yield f"exit status {status.value}: {meaning(status, ends)}", False
