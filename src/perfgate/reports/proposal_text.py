"""Proposal text: a proposed baseline as a commit message and as a pull request's description. Pure.

All that a run, a scenario or a person wrote is one line of the text here: `git am` takes a line of
its own that begins with ``---`` or ``diff`` for the end of the message.
"""

from collections.abc import Iterator, Sequence

from perfgate.baselines import Baseline
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.redaction import redact
from perfgate.core.verdict import counted
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance.proposal import Held, MetricEvidence, Noise, Proposal
from perfgate.reports.figures import number, signed
from perfgate.reports.markdown_text import code, prose, shortened, table
from perfgate.reports.tables import text_table

SUBJECT = 72  # characters that tools show of a commit's first line
_MOST = 300  # characters of a text that somebody wrote
_MACHINE = ("cpu", "cores", "gpus", "driver")
_COLUMNS = ("probe", "metric", "unit", "before", "after", "change", "interval", "band", "verdict")
_RIGHT = range(3, 8)
_CHANGES = {
    "first": "first: nothing comparable came before",
    "none": "none: the level stays",
    "regression": "regression: a loss is accepted, a new level starts",
    "improvement": "improvement: a new level starts",
}


def subject(proposal: Proposal) -> str:
    """The commit's first line, at most `SUBJECT` characters where that is possible."""
    baseline = proposal.baseline
    head = f"Baseline {baseline.scenario} on {baseline.hardware}:"
    engine, moved = baseline.engine, _moved(proposal)
    name = _line(f"{engine.name} {engine.version}", 40)
    long, short = (_commit(engine, digits) for digits in (12, 7))
    tries = (f"{name}{long}, {moved}", f"{name}{short}, {moved}", f"{name}{short}", name)
    found = (f"{head} {one}" for one in tries)
    # Brackets at its start would be taken away by `git am`.
    return next((one for one in found if len(one) <= SUBJECT), f"{head} {tries[1]}")


def message(proposal: Proposal) -> str:
    """All of the commit's message."""
    lines = [subject(proposal), "", f"Change: {_CHANGES[proposal.change]}"]
    for held in proposal.held:
        lines += ["", _heading(held)]
        lines += text_table(_COLUMNS, _rows(held), right=_RIGHT, ruled=True).splitlines()
        lines += [f"not comparable: {_line(fact)}" for fact in _facts(held)]
    if not proposal.held:
        lines += ["", "There is no baseline before it, and no anchor."]
    lines += ["", *_noise(proposal.noise), ""]
    lines += [f"{name}: {text}" for name, text in _told(proposal)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def body(proposals: Sequence[Proposal], left_out: Sequence[str] = ()) -> str:
    """A description of the pull request that holds the proposals, in Markdown."""
    lines = [
        "Who merges this accepts these numbers as the baselines that later builds are held to."
    ]
    for one in proposals:
        baseline = one.baseline
        lines += ["", f"### {code(baseline.scenario)} on {code(baseline.hardware)}", ""]
        if one.losses:
            lines.append("**This accepts a loss:**")
            lines += [f"- {prose(loss)}" for loss in one.losses]
            lines.append("")
        lines.append(f"Change: {prose(_CHANGES[one.change])}")
        for held in one.held:
            lines += ["", prose(_heading(held)), ""]
            rows = [tuple(prose(cell) for cell in row) for row in _rows(held)]
            lines.append(table(_COLUMNS, rows, _RIGHT))
            lines += ["", *(f"- not comparable: {prose(fact)}" for fact in _facts(held))]
        if not one.held:
            lines += ["", "There is no baseline before it, and no anchor."]
        lines += ["", *(f"- {prose(line, _MOST)}" for line in _noise(one.noise)), ""]
        told = [(name, prose(text, _MOST)) for name, text in _told(one)]
        lines.append(table(("fact", ""), told, ()))
    if left_out:
        lines += ["", "Measured, and not proposed:", *(f"- {prose(one)}" for one in left_out)]
    return "\n".join(lines) + "\n"


def _moved(proposal: Proposal) -> str:
    """The change of the metric that matters most, of the probe that lost most of it."""
    before = [one for one in proposal.held if one.against == "baseline"]
    told = [one.change for held in before for one in held.metrics if one.change.change is not None]
    if not told:
        return "the first" if proposal.change == "first" else proposal.change
    first = told[0].metric
    name = next((one.metric for one in told if one.metric == "output_throughput"), first)
    worse = 1 if lookup(name).direction == "higher" else -1
    change = min((one.change or 0.0 for one in told if one.metric == name), key=lambda x: worse * x)
    return f"{name} {signed(name, change)}"


def _heading(held: Held) -> str:
    baseline = held.other.baseline
    name = "the baseline before" if held.against == "baseline" else "the anchor"
    engine = _line(f"{baseline.engine.name} {baseline.engine.version}", 60)
    return f"Against {name}, {engine}{_commit(baseline.engine, 12)} ({_line(held.other.why)}):"


def _rows(held: Held) -> list[tuple[str, ...]]:
    return [_row(one) for one in held.metrics]


def _row(one: MetricEvidence) -> tuple[str, ...]:
    change = one.change
    name = change.metric
    bounds = (
        "-"
        if change.interval is None
        else f"{signed(name, change.interval[0])} … {signed(name, change.interval[1])}"
    )
    sign = "-" if lookup(name).direction == "higher" else "+"
    return (
        change.probe,
        name,
        lookup(name).unit,
        number(change.before),
        number(change.after),
        signed(name, change.change),
        bounds,
        f"{sign}{_absolute(name, one.band)}",
        one.verdict.value,
    )


def _facts(held: Held) -> list[str]:
    return list(dict.fromkeys(fact for one in held.metrics for fact in one.facts))


def _noise(noise: Sequence[Noise]) -> Iterator[str]:
    for one in noise:
        spread = "unknown" if one.spread is None else f"±{_absolute(one.metric, one.spread)}"
        yield (
            f"Noise of one start, {one.probe} {one.metric}: {spread} "
            f"({counted(one.starts, 'start')}, {counted(one.sessions, 'session')})"
        )


def _told(proposal: Proposal) -> Iterator[tuple[str, str]]:
    """The facts of a proposal, each a line."""
    baseline = proposal.baseline
    yield "Engine", _line(f"{baseline.engine.name} {baseline.engine.version}")
    yield "Engine-commit", _line(baseline.engine.commit)
    if baseline.source is not None and baseline.source.image:
        yield "Engine-image", _line(baseline.source.image)
    yield "Machine", _line(_machine(baseline))
    starts = (f"{label} {len(one.runs)}" for label, one in baseline.entries.items())
    yield "Starts", ", ".join(starts)
    yield "Runs", _line(", ".join(_runs(baseline)))
    yield "Proposed-from", _line(", ".join(proposal.runs))
    yield "Content", ", ".join(f"{label} {told}" for label, told in proposal.contents.items())
    for loss in proposal.losses:
        yield "Loss", _line(loss)
    for note in proposal.notes:
        yield "Note", _line(note)
    yield "Reason", _line(baseline.reason)
    yield "Accepted-by", _line(baseline.accepted_by)


def _absolute(metric: str, share: float) -> str:
    return f"{100 * share:.1f} {'points' if is_accuracy(metric) else '%'}"


def _runs(baseline: Baseline) -> list[str]:
    runs = sorted((run.started, run.run) for one in baseline.entries.values() for run in one.runs)
    return list(dict.fromkeys(name for _, name in runs))


def _machine(baseline: Baseline) -> str:
    facts = next(iter(baseline.entries.values())).fingerprint
    return "; ".join(
        [baseline.hardware, *(f"{name} {facts[name]}" for name in _MACHINE if name in facts)]
    )


def _commit(engine: EngineBuild, digits: int) -> str:
    """The commit, where it says more than the version."""
    return "" if engine.commit == engine.version else f" {_line(engine.commit, 64)[:digits]}"


def _line(text: str, most: int = _MOST) -> str:
    """Text that somebody wrote, on one line, without secrets."""
    return shortened(redact(text), most)
