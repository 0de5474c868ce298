"""Faults of waivers: those that ended, were exceeded or let nothing through fail the run.

Pure: looks at the verdict records of a whole run, so that no process of it must know the others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, Protocol

from perfgate.baselines.waivers.waiver import (
    Waiver,
    amount,
    is_within,
    limit_of,
    loss_of,
    lost_beyond,
)
from perfgate.core.errors import InputError, did_you_mean
from perfgate.core.verdict import Judgement, Verdict
from perfgate.runs.record import VerdictRecord
from perfgate.scenarios.scenario import Scenario

_PASSED = (Verdict.PASS, Verdict.IMPROVEMENT)
_AGAINST = {"anchor": "against the anchor", "documented": "against the document"}
_MOST_TOLD = 12  # names that a message may list

_Labelled = tuple[str, Judgement]  # a probe's label, and one of its judgements
Kind = Literal["expired", "exceeded", "unmatched"]

# What can be wrong → its kind, the problem, and how to fix it.
_FAULTS: Mapping[str, tuple[Kind, str, str]] = {
    "unknown": (
        "unmatched",
        "the waiver matches nothing that the suite judges",
        "correct it, or remove the waiver",
    ),
    "expired": (
        "expired",
        "the waiver has expired",
        "remove it, or give it a later last_day if its reason still holds",
    ),
    "exceeded": (
        "exceeded",
        "the loss exceeds the waiver",
        "fix the loss; raise at_most only if the owner accepts it",
    ),
    "needless": (
        "unmatched",
        "the waiver is no longer needed: no loss is proved any more",
        "take it out",
    ),
}


class WaiverTarget(Protocol):
    """What gets verdicts: a probe, or the curve of a scenario's points."""

    @property
    def scenario(self) -> Scenario:
        """The scenario it belongs to."""

    @property
    def label(self) -> str:
        """Short name, unique in the scenario."""

    def gating_metrics(self) -> tuple[str, ...]:
        """The metrics that gate there."""


@dataclass(frozen=True)
class Known:
    """What the suite can judge of one scenario.

    Attributes:
        hardware: its label.
        probes: label of each probe → the metrics that gate there.
    """

    hardware: str
    probes: Mapping[str, Sequence[str]]


def known_of(probes: Iterable[WaiverTarget]) -> dict[str, Known]:
    """Scenario id → what can be judged of it."""
    hardware: dict[str, str] = {}
    metrics: dict[str, dict[str, tuple[str, ...]]] = {}
    for probe in probes:
        hardware[probe.scenario.id] = probe.scenario.hardware.label
        metrics.setdefault(probe.scenario.id, {})[probe.label] = probe.gating_metrics()
    return {scenario: Known(label, metrics[scenario]) for scenario, label in hardware.items()}


@dataclass(frozen=True)
class WaiverFault:
    """Why a waiver fails the run; `message` has its place, what was found and how to fix it."""

    waiver: Waiver
    kind: Kind
    message: str


def faults(
    waivers: Iterable[Waiver],
    verdict_records: Iterable[VerdictRecord],
    *,
    known: Mapping[str, Known],
    today: date,
) -> tuple[WaiverFault, ...]:
    """What is wrong with the waivers, seen from the end of a run; in the order of the waivers.

    - unmatched: it names a scenario, hardware, metric or probe that the suite does not have; or
      everything that it is for was judged, and no judgement proves any loss.
    - expired: its last day is past, and its scenario is in this run (or in no run, being unknown).
    - exceeded: a regression that it is for lost more than it lets through.

    What was not selected, skipped, undecided or failed says nothing of a waiver; nor do the numbers
    of a rehearsal, of a run with settings changed on purpose, or a claim.

    Args:
        waivers: all there are.
        verdict_records: those of the whole run.
        known: all that the suite has, selected or not, from `known_of`.
        today: the day of the run.
    """
    records = list(verdict_records)
    in_run = {record.scenario for record in records}
    found: list[WaiverFault] = []
    for waiver in waivers:
        unknown = list(_unknown(waiver, known))
        found += unknown
        if today > waiver.last_day:
            if waiver.scenario in in_run or waiver.scenario not in known:
                found.append(
                    _fault(waiver, "expired", f"last day {waiver.last_day}, today is {today}")
                )
        elif not unknown:
            scenario = known[waiver.scenario]
            judged = list(_judged(waiver, scenario, records))
            fault = _beyond(waiver, judged) or _needless(waiver, scenario, judged)
            found += [fault] if fault else []
    return tuple(found)


def _fault(
    waiver: Waiver,
    what: str,
    found: str,
    field: str | None = None,
    expected: str | None = None,
    meant: str | None = None,
) -> WaiverFault:
    kind, problem, hint = _FAULTS[what]
    error = InputError(
        f"{problem} ({waiver.metric} of {waiver.scenario}, owner {waiver.owner})",
        file=waiver.file,
        line=waiver.line,
        field=field,
        found=found,
        expected=expected,
        hint=meant or hint,
    )
    return WaiverFault(waiver, kind, str(error))


def _unknown(waiver: Waiver, known: Mapping[str, Known]) -> Iterator[WaiverFault]:
    """The first thing that the waiver names and the suite does not have."""
    scenario = known.get(waiver.scenario)
    if scenario is None:
        yield _unmatched(waiver, "scenario", known)
        return
    gating = dict.fromkeys(name for names in scenario.probes.values() for name in names)
    there = [label for label, metrics in scenario.probes.items() if waiver.metric in metrics]
    if waiver.hardware != scenario.hardware:
        yield _unmatched(waiver, "hardware", [scenario.hardware])
    elif waiver.metric not in gating:
        yield _unmatched(waiver, "metric", gating)
    elif waiver.probe not in (None, *there):
        yield _unmatched(waiver, "probe", there)


def _unmatched(waiver: Waiver, field: str, those: Iterable[str]) -> WaiverFault:
    there, found = list(those), str(getattr(waiver, field))
    # Of metrics and points the nearest spelling is another one, not the one that was meant.
    meant = did_you_mean(found, there) if field == "scenario" else None
    expected = "one of " + ", ".join(there)
    if len(there) > _MOST_TOLD:
        expected = "an id that `perfgate scenarios list` shows"
    return _fault(waiver, "unknown", found, field, expected, meant)


def _covered(waiver: Waiver, scenario: Known) -> list[str]:
    """The probes that the waiver is for; a claim about the scenario is none of them."""
    return [
        label
        for label, metrics in scenario.probes.items()
        if waiver.metric in metrics and waiver.probe in (None, label)
    ]


def _judged(
    waiver: Waiver, scenario: Known, records: Iterable[VerdictRecord]
) -> Iterator[_Labelled]:
    """The judgements that the waiver is for, each with its probe's label."""
    labels = _covered(waiver, scenario)
    for record in records:
        is_there = record.scenario == waiver.scenario and record.probe in labels
        # Neither mock programs nor settings changed on purpose tell what the build lost.
        if not is_there or record.synthetic or record.injected:
            continue
        for judgement in record.judgements:
            if judgement.metric == waiver.metric:
                yield record.probe, judgement


def _beyond(waiver: Waiver, judged: Iterable[_Labelled]) -> WaiverFault | None:
    found = []
    for label, one in judged:
        loss = loss_of(waiver.metric, one.change)
        if one.verdict == Verdict.REGRESSION and not is_within(loss, waiver):
            found.append(f"{label}: lost {lost_beyond(loss, waiver)}{_against(one)}")
    if not found:
        return None
    return _fault(waiver, "exceeded", "; ".join(found), "at_most", f"at most {limit_of(waiver)}")


def _needless(waiver: Waiver, scenario: Known, judged: Sequence[_Labelled]) -> WaiverFault | None:
    """What shows that there is nothing to let through; None: there is, or there may be."""
    if not set(_covered(waiver, scenario)) <= {label for label, _ in judged}:
        return None  # what was not measured may have lost
    if not all(_shows_no_loss(waiver.metric, one) for _, one in judged):
        return None
    found = [
        f"{label}: {one.verdict.value}, changed by "
        f"{amount(waiver.metric, one.change or 0.0, sign='+')}{_against(one)}"
        for label, one in judged
    ]
    return _fault(waiver, "needless", "; ".join(found))


def _shows_no_loss(metric: str, judgement: Judgement) -> bool:
    """Whether it passed and its interval reaches to where nothing is lost."""
    interval = judgement.interval
    if judgement.verdict not in _PASSED or interval is None or judgement.change is None:
        return False
    return min(loss_of(metric, bound) for bound in interval) <= 0


def _against(judgement: Judgement) -> str:
    against = judgement.against
    return "" if against == "baseline" else f" ({_AGAINST.get(against, against)})"
