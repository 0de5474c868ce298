"""The end of a run on the terminal: one line per verdict, what was skipped, the exit status."""

from collections.abc import Iterator, Sequence

from perfgate.core.redaction import visible
from perfgate.core.verdict import Verdict
from perfgate.reports.candidates import candidate_lines
from perfgate.reports.measured_text import (
    documented_gaps,
    identity_lines,
    measured_lines,
    worse_lines,
)
from perfgate.reports.outcome_text import brief, resolution, resumed
from perfgate.reports.whole_run import (
    WORSE,
    marked,
    probably_worse,
    starts,
    suspicion,
    waived,
    waiver_faults,
    without_controls,
)
from perfgate.runs.exit_status import ExitStatus, meaning
from perfgate.runs.record import Record, SkippedRecord, VerdictRecord, records_of

_FEW = 5  # a longer list is in summary.md


def terminal_lines(
    records: Sequence[Record], status: ExitStatus | None
) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is good news; numbers of stand-ins never are.

    Args:
        records: the run's records, all kinds.
        status: how the run ended; None if it was broken off.
    """
    verdicts = records_of(VerdictRecord, records)
    skipped = records_of(SkippedRecord, records)
    for line in verdicts:
        text, good = _verdict(line)
        yield _shown(text), good
        if gaps := documented_gaps(line):
            yield _shown(f"{'':14} {gaps}"), good
    rest = [*(f"{'skipped':14} {line.name}: {line.reason}" for line in skipped)]
    rest += [*measured_lines(verdicts), *identity_lines(verdicts), *_whole_run(records)]
    rest += candidate_lines(records)
    if status is not None:
        ends = [*(line.verdict for line in verdicts), *(None for _ in skipped)]
        rest.append(f"exit status {status.value}: {meaning(status, ends)}")
    for text in rest:
        yield _shown(text), False


def _shown(text: str) -> str:
    """The text as one entry: what follows a line end in it cannot pass for an entry of its own."""
    return visible(text).replace("\n", "\n" + 15 * " ")


def _verdict(line: VerdictRecord) -> tuple[str, bool]:
    verdict = line.verdict
    detail = brief(line.judgements) or line.reason
    if line.error is not None and not detail:
        detail = line.error.message
    good = verdict in (Verdict.PASS, Verdict.IMPROVEMENT) and not line.synthetic
    mark = "synthetic " if line.synthetic else ""
    before = f" ({resumed(line.resumed_from)})" if line.resumed_from else ""
    return f"{mark}{verdict:14} {line.name}: {detail}{before}", good


def _whole_run(records: Sequence[Record]) -> Iterator[str]:
    """What only the whole run shows."""
    verdicts = records_of(VerdictRecord, records)
    if smallest := resolution(verdicts):
        yield f"smallest regression detectable on this machine now: {smallest}"
    yield from (f"{mark:14} {text}" for mark, text in marked(records, _FEW))
    yield from (f"{'waived':14} {text}" for text in waived(records))
    yield from (f"{'waiver':14} {text}" for text in waiver_faults(records))
    if worse := probably_worse(records):
        yield f"{WORSE}:"
        yield from worse_lines(worse)
    if text := starts(records):
        yield text
    if text := suspicion(records):
        yield f"suspicion: {text}"
    if text := without_controls(records):
        yield text
