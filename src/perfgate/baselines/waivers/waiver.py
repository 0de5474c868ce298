"""Waiver: one known loss that is let through, and which regressions it lets through. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Literal

from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import AppliedWaiver, Judgement, Verdict
from perfgate.runs.record import VerdictRecord

# A loss of exactly three points is 0.03 only in decimals (0.93 - 0.90 is a little more); this is
# far below one question of any evaluation, and below what any report shows.
_ROUNDING = 1e-9
_MOST_DECIMALS = 7  # of a percentage: as fine as that rounding


@dataclass(frozen=True)
class Waiver:
    """A known loss that is let through.

    Attributes:
        scenario: id of the scenario.
        metric: canonical name of the metric.
        hardware: label of the scenario's hardware: ``cpu``, ``8xB200``.
        at_most: largest loss let through, as a positive fraction (accuracy: absolute).
        reason: why.
        link: where it is followed up.
        owner: who answers for it.
        last_day: the last day on which it holds.
        line: where it stands in its file.
        file: that file.
        probe: label of the one probe that it is for; None: all of the scenario's.
    """

    scenario: str
    metric: str
    hardware: str
    at_most: float
    reason: str
    link: str
    owner: str
    last_day: date
    line: int
    file: Path = Path("waivers.yaml")
    probe: str | None = None


def loss_of(metric: str, change: float | None) -> float:
    """The signed change of a value as a loss: positive is worse; NaN where none was measured."""
    if change is None:
        return math.nan
    return -change if lookup(metric).direction == "higher" else change


def is_within(loss: float, waiver: Waiver) -> bool:
    """Whether the waiver lets a loss of that size through; one of unknown size never."""
    return math.isfinite(loss) and loss <= waiver.at_most + _ROUNDING


def amount(
    metric: str, fraction: float, decimals: int = 1, *, sign: Literal["-", "+"] = "-"
) -> str:
    """``3.0 %``; of an accuracy, ``3.0 points``; with the sign ``+`` also before what is gained."""
    rounded = round(100 * fraction, decimals) + 0.0  # no "-0.0"
    return f"{rounded:{sign}.{decimals}f} {'points' if is_accuracy(metric) else '%'}"


def limit_of(waiver: Waiver) -> str:
    """What the waiver lets through, with the digits that it is written with: ``3.0 %``."""
    return amount(waiver.metric, waiver.at_most, _decimals_of(waiver))


def lost_beyond(loss: float, waiver: Waiver) -> str:
    """A loss larger than the waiver's limit, with as many digits as tell it from that."""
    if not math.isfinite(loss):
        return "an unknown amount"
    for decimals in range(_decimals_of(waiver), _MOST_DECIMALS):
        lost = amount(waiver.metric, loss, decimals)
        if lost != amount(waiver.metric, waiver.at_most, decimals):
            return lost
    return amount(waiver.metric, loss, _MOST_DECIMALS)


def _decimals_of(waiver: Waiver) -> int:
    written = 100 * waiver.at_most
    exact = (n for n in range(1, _MOST_DECIMALS) if abs(round(written, n) - written) < _ROUNDING)
    return next(exact, _MOST_DECIMALS)


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


def in_force(records: Iterable[VerdictRecord]) -> list[LetThrough]:
    """What waivers let through in a run, in the order of its verdict records."""
    return [
        LetThrough(record.name, judgement.metric, judgement.change or 0.0, judgement.waiver.text)
        for record in records
        for judgement in record.judgements
        if judgement.waiver
    ]
