"""Coverage: which regressions of a probe are let through, and what was in a whole run. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from perfgate.baselines.waivers.waiver import Waiver, is_within, limit_of, loss_of, lost_beyond
from perfgate.core.verdict import AppliedWaiver, Judgement, Verdict
from perfgate.runs.records import name_of


@dataclass(frozen=True)
class LetThrough:
    """A regression that a waiver let through, for reports: `change` as in `Judgement`."""

    name: str
    metric: str
    change: float
    waiver: str


def waive(
    judgements: Iterable[Judgement],
    *,
    scenario: str,
    hardware: str,
    probe: str,
    waivers: Iterable[Waiver],
    today: date,
) -> tuple[Judgement, ...]:
    """The judgements of one probe, with `waiver` set on each regression that is let through.

    That is a REGRESSION, against whatever reference but a claim, whose measured loss is at most
    what a waiver for it allows on a day up to its last. The verdict stays REGRESSION. Where a
    waiver has ended or is exceeded, a note says so.

    Args:
        judgements: of one probe.
        scenario: id of its scenario.
        hardware: label of the scenario's hardware.
        probe: the probe's label.
        waivers: all there are.
        today: the day of the run.
    """
    here = [
        waiver
        for waiver in waivers
        if (waiver.scenario, waiver.hardware) == (scenario, hardware)
        and waiver.probe in (None, probe)
    ]
    return tuple(
        _waived(judgement, [waiver for waiver in here if waiver.metric == judgement.metric], today)
        if judgement.verdict == Verdict.REGRESSION and judgement.against != "claim"
        else judgement
        for judgement in judgements
    )


def _waived(judgement: Judgement, waivers: Sequence[Waiver], today: date) -> Judgement:
    loss = loss_of(judgement.metric, judgement.change)
    notes = list(judgement.notes)
    for waiver in waivers:
        if today > waiver.last_day:
            notes.append(f"the waiver of {waiver.owner} ended on {waiver.last_day}")
        elif is_within(loss, waiver):
            applied = AppliedWaiver(waiver.owner, waiver.last_day, _sentence(waiver))
            return replace(judgement, waiver=applied)
        else:
            notes.append(
                f"exceeds the waiver of {waiver.owner}: lost {lost_beyond(loss, waiver)}, "
                f"at most {limit_of(waiver)}"
            )
    return replace(judgement, notes=tuple(notes))


def _sentence(waiver: Waiver) -> str:
    return (
        f"waived by {waiver.owner} up to a loss of {limit_of(waiver)}, "
        f"until {waiver.last_day}: "
        f"{waiver.reason.rstrip('.')} ({waiver.link})"
    )


def in_force(records: Iterable[Mapping[str, Any]]) -> list[LetThrough]:
    """What waivers let through in a run, in the order of its verdict records."""
    return [
        LetThrough(name_of(record), one["metric"], one["change"], one["waiver"]["text"])
        for record in records
        for one in record.get("judgements", ())
        if one.get("waiver")
    ]
