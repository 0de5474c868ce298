"""`perfgate baseline history`: all baselines of a scenario, oldest first."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import asdict

from perfgate.baselines import suite_store
from perfgate.cli.output import add_format, answer, table
from perfgate.cli.scenario_choice import load
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.metrics import lookup
from perfgate.judging.acceptance import HistoryEntry, history
from perfgate.reports.figures import number, signed

_STEP_COLUMNS = ("version", "commit", "accepted", "by", "change", "starts", "")
_VALUE_COLUMNS = ("probe", "metric", "unit", "version", "commit", "mean", "since before", "anchor")


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of `history`."""
    verb.add_argument("scenario", metavar="SCENARIO", help="the scenario's id")
    verb.add_argument("--hardware", metavar="LABEL", help="only on this hardware, e.g. 8xB200")
    add_format(verb, markdown=True)
    verb.set_defaults(execute=_history)


def _history(arguments: argparse.Namespace) -> int:
    store = suite_store()
    locations = sorted(
        {
            one.parent.parent.name
            for one in store.list()
            if one.parent.name == arguments.scenario
            and arguments.hardware in (None, one.parent.parent.name)
        }
    )
    if not locations:
        known = sorted({one.parent.name for one in store.list()})
        raise InputError(
            "no baseline of this scenario",
            found=arguments.scenario + (f" on {arguments.hardware}" if arguments.hardware else ""),
            expected=f"one of {', '.join(known)}" if known else "at least one baseline",
        )
    metrics = _primary_metrics(arguments.scenario)
    found = {place: history(store, place, arguments.scenario, metrics) for place in locations}
    mark = "## " if arguments.format == "markdown" else ""
    places = [
        f"{mark}{arguments.scenario} on {place}, oldest first\n\n"
        f"{table(_STEP_COLUMNS, [*map(_step_row, steps)], arguments.format)}\n\n"
        f"{table(_VALUE_COLUMNS, _value_rows(steps), arguments.format)}"
        for place, steps in found.items()
    ]
    plain = {place: [_plain_step(step) for step in steps] for place, steps in found.items()}
    return answer(arguments, plain, "\n\n".join(places))


def _primary_metrics(scenario: str) -> Collection[str] | None:
    """The metrics that gate the scenario; None where its file is gone or unusable."""
    try:
        found = load(None).scenarios
    except PerfgateError:
        return None
    return next((one.gate.metrics for one in found if one.id == scenario), None)


def _step_row(step: HistoryEntry) -> tuple[str, ...]:
    one = step.baseline
    marks = []
    if step.is_anchor:
        marks.append("anchor")
    if one.retired:
        marks.append(f"retired by {one.retired.by}: {one.retired.reason}")
    if one.regression:
        marks.append(f"loss accepted: {one.regression}")
    return (
        one.engine.version,
        one.engine.commit[:12],
        one.accepted_at[:10],
        one.accepted_by,
        one.change,
        str(step.starts),
        "; ".join(marks),
    )


def _value_rows(steps: Sequence[HistoryEntry]) -> list[tuple[str, ...]]:
    """Sorted by probe and metric, so that each is a series to read down."""
    rows = [(value.probe, value.metric, step, value) for step in steps for value in step.values]
    rows.sort(key=lambda row: row[:2])
    return [
        (
            probe,
            metric,
            lookup(metric).unit,
            step.baseline.engine.version,
            step.baseline.engine.commit[:12],
            number(value.mean),
            signed(metric, value.since_before),
            "is it" if step.is_anchor else signed(metric, value.since_anchor),
        )
        for probe, metric, step, value in rows
    ]


def _plain_step(step: HistoryEntry) -> dict[str, object]:
    one = step.baseline
    return {
        "file": str(one.file),
        **{"version": one.engine.version, "commit": one.engine.commit},
        **{name: getattr(one, name) for name in ("accepted_at", "accepted_by", "reason", "change")},
        "regression": one.regression or None,
        "retired": asdict(one.retired) if one.retired else None,
        "anchor": step.is_anchor,
        "starts": step.starts,
        "values": [asdict(value) for value in step.values],
    }
