"""Proposal text: a proposed baseline as a commit message and as a pull request's description. Pure.

All that a run, a scenario or a person wrote is one line of the text here: `git am` takes a line of
its own that begins with ``---`` or ``diff`` for the end of the message.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import stdev

import jinja2

from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.redaction import redact
from perfgate.core.verdict import counted
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance import Evidence, MetricChange, MetricEvidence, Proposal
from perfgate.reports.figures import number, signed
from perfgate.reports.tables import text_table
from perfgate.reports.templating import REPORTS, code, environment, fenced, prose, shortened

CHANGES = {
    "first": "first (nothing comparable came before; a new level starts)",
    "none": "none (the level stays; its runs join those of the baselines before)",
    "regression": "regression (a loss is accepted; a new level starts)",
    "improvement": "improvement (a new level starts)",
}
_SHORT = {
    "first": "the first",
    "none": "same level",
    "regression": "accepted loss",
    "improvement": "improvement",
}
CHANGE_COLUMNS = ("probe", "metric", "unit", "before", "after", "change", "interval")
_MACHINE = ("cpu", "cores", "gpus", "driver")


def change_cells(change: MetricChange) -> tuple[str, ...]:
    """How far a metric moved: a row of a table with `CHANGE_COLUMNS`."""
    bounds = change.interval or ()
    return (
        change.probe,
        change.metric,
        lookup(change.metric).unit,
        number(change.before),
        number(change.after),
        signed(change.metric, change.change),
        " … ".join(signed(change.metric, bound) for bound in bounds) or "-",
    )


def subject(proposal: Proposal) -> str:
    """The commit's first line; without brackets at its start, which `git am` takes away."""
    candidate = proposal.candidate
    engine = candidate.engine
    name = _line(f"{engine.name} {engine.version}", 40) + _commit(engine, 7)
    change = _SHORT[proposal.promotion.change]
    return f"Baseline {candidate.scenario} on {candidate.hardware}: {name}, {change}"


def message(proposal: Proposal) -> str:
    """All of the commit's message."""
    candidate = proposal.candidate
    starts = sorted((run.started, run.run) for e in candidate.entries.values() for run in e.runs)
    facts = next(iter(candidate.entries.values())).fingerprint
    machine = [f"{name} {facts[name]}" for name in _MACHINE if name in facts]
    text = _templates().get_template("proposal.txt")
    return text.render(
        proposal=proposal,
        candidate=candidate,
        spreads=list(_spreads(proposal)),
        machine="; ".join([candidate.hardware, *machine]),
        runs=", ".join(dict.fromkeys(run for _, run in starts)),
    )


def body(proposals: Sequence[Proposal], left_out: Sequence[str] = ()) -> str:
    """A description of the pull request that holds the proposals, in Markdown."""
    text = _templates().get_template("proposals.md")
    return text.render(proposals=proposals, left_out=left_out)


@cache
def _templates() -> jinja2.Environment:
    found = environment(REPORTS)
    found.globals["changes"] = CHANGES
    found.filters |= {
        "line": _line,
        "commit": _commit,
        "rows": _rows,
        "message": message,
        "subject": subject,
    }
    found.filters |= {"prose": prose, "code": code, "fenced": fenced}
    return found


def _rows(comparison: Evidence) -> list[str]:
    """The lines of a table of its metrics."""
    columns = (*CHANGE_COLUMNS, "band", "verdict")
    rows = [_cells(metric) for metric in comparison.metrics]
    table = text_table(columns, rows, right=range(3, 8), ruled=True)
    return [line.rstrip() for line in table.splitlines()]


def _cells(evidence: MetricEvidence) -> tuple[str, ...]:
    metric = evidence.change.metric
    sign = "-" if lookup(metric).direction == "higher" else "+"
    band = f"{sign}{_absolute(metric, evidence.band)}"
    return (*change_cells(evidence.change), band, evidence.verdict.value)


def _spreads(proposal: Proposal) -> Iterator[str]:
    """The standard deviation of one start, of each gating metric."""
    for label, metric in proposal.gating:
        entry = proposal.candidate.entries[label]
        values = entry.values(metric)
        spread = "unknown"
        if len(values) > 1 and is_accuracy(metric):
            spread = f"±{_absolute(metric, stdev(values))}"
        elif len(values) > 1 and min(values) > 0:
            spread = f"±{_absolute(metric, stdev(map(math.log, values)))}"
        starts, sessions = len(values), entry.sessions(metric)
        yield (
            f"{label} {metric}: {spread} "
            f"({counted(starts, 'start')}, {counted(sessions, 'session')})"
        )


def _absolute(metric: str, share: float) -> str:
    return f"{100 * share:.1f} {'points' if is_accuracy(metric) else '%'}"


def _commit(engine: EngineBuild, digits: int) -> str:
    """The commit, where it says more than the version."""
    return "" if engine.commit == engine.version else f" {_line(engine.commit, 64)[:digits]}"


def _line(text: str, most: int = 300) -> str:
    """Text that somebody wrote, on one line, without secrets."""
    return shortened(redact(text), most)
