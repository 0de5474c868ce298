"""Series: the state of each test over runs, and which states a run changed. Pure.

A series is one test of the suite (a probe, claim or curve, with its scenario and so its engine and
hardware), and one more stands for the run itself: whether it ended, and whether its waivers hold.
A test that a run did not select, or that this machine could not run, keeps its state: a scenario is
green again only when what was red is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from perfgate.gate.verdict import Judgement, Verdict
from perfgate.reports.outcome_text import band, brief, interval, signed
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.verdicts.exit_status import ExitStatus

# A proved loss, or a waiver that does not hold; no numbers, or a run that did not end; measured or
# asked for, and nothing to judge it by; not decided by the allowed starts; passed.
State = Literal["red", "error", "unjudged", "undecided", "green"]

FROM_WORST: tuple[State, ...] = ("red", "error", "unjudged", "undecided", "green")
THE_RUN = "(run)"  # no test has such a name
KEPT_DAYS = 90  # a test that no run had for so long was renamed or taken out

_OF_A_VERDICT: Mapping[Verdict, State] = {
    Verdict.REGRESSION: "red",
    Verdict.ERROR: "error",
    Verdict.NO_BASELINE: "unjudged",
    Verdict.NOT_COMPARABLE: "unjudged",
    Verdict.INCONCLUSIVE: "undecided",
    Verdict.IMPROVEMENT: "green",
    Verdict.PASS: "green",
}


@dataclass(frozen=True)
class SeriesState:
    """The state of a series, as it was told last, or needed no telling.

    Attributes:
        state: that state.
        run: id of the run that it is from.
        started: when that run started, ISO 8601, UTC.
    """

    state: State
    run: str
    started: str


@dataclass(frozen=True)
class Standing:
    """What a run says of one series.

    Attributes:
        name: of the series.
        scenario: id of its scenario; empty: the run itself.
        label: short name in the scenario.
        now: its state.
        why: one sentence.
        size: of a loss, in bands; for the order.
        result: the test's result; None: the run itself.
    """

    name: str
    scenario: str
    label: str
    now: SeriesState
    why: str = ""
    size: float = 0.0
    result: TestResult | None = None


@dataclass(frozen=True)
class Change:
    """A series whose state is another than before.

    Attributes:
        standing: what the run says.
        before: the state before; None: it was not known.
    """

    standing: Standing
    before: State | None

    @property
    def state(self) -> State:
        """The new state."""
        return self.standing.now.state


def standings(report: RunReport, *, synthetic: bool = False) -> list[Standing]:
    """The series that a run says something of.

    Args:
        report: the run.
        synthetic: those of stand-ins instead of the measured ones.
    """
    runs = {one.id: one for one in report.runs}
    prefix = "synthetic " if synthetic else ""
    found = []
    for result in report.results:
        stood_in = result.synthetic if result.verdict else report.synthetic
        run = runs.get(result.run)
        if stood_in != synthetic or run is None:
            continue
        state = _state(result, gate=run.gate, record_only=run.record_only)
        if state is not None:
            found.append(
                Standing(
                    f"{prefix}{result.name}",
                    result.scenario,
                    result.probe,
                    SeriesState(state, run.id, run.started),
                    _why(result, state),
                    max((_bands(one) for one in _lost(result)), default=0.0),
                    result,
                )
            )
    if report.runs and report.synthetic == synthetic:
        state, why = _of_run(report)
        last = max(report.runs, key=lambda one: one.started)
        now = SeriesState(state, last.id, last.started)
        found.append(Standing(f"{prefix}{THE_RUN}", "", "", now, why))
    return found


def changes(found: list[Standing], known: Mapping[str, SeriesState]) -> list[Change]:
    """What is worth telling, the worst first.

    A series that was never seen is told unless it is green. What an earlier run said than the one
    that is known is not news.

    Args:
        found: what a run says.
        known: the states so far.
    """
    changed = []
    for one in found:
        before = known.get(one.name)
        if before is None:
            if one.now.state != "green":
                changed.append(Change(one, None))
        elif not _is_older(one, before) and one.now.state != before.state:
            changed.append(Change(one, before.state))
    return sorted(
        changed,
        key=lambda one: (FROM_WORST.index(one.state), -one.standing.size, one.standing.name),
    )


def after(found: list[Standing], known: Mapping[str, SeriesState]) -> dict[str, SeriesState]:
    """The states once a run is told; those that no run had for 90 days are forgotten."""
    states = dict(known)
    for one in found:
        before = states.get(one.name)
        if before is None or not _is_older(one, before):
            states[one.name] = one.now
    last = max((_day(one.started) for one in states.values()), default=None)
    return {
        name: one
        for name, one in states.items()
        if last is not None and _day(one.started) >= last - timedelta(days=KEPT_DAYS)
    }


def _is_older(one: Standing, known: SeriesState) -> bool:
    return one.now.run != known.run and _day(one.now.started) < _day(known.started)


def _day(started: str) -> datetime:
    return datetime.fromisoformat(started)


def _state(result: TestResult, *, gate: bool, record_only: bool) -> State | None:
    """The state of a test; None: the run says nothing of it."""
    if result.verdict is None:
        return "unjudged" if gate and result.why_not != "unfinished" else None
    state = _OF_A_VERDICT[result.verdict]
    return None if record_only and state == "unjudged" else state


def _why(result: TestResult, state: State) -> str:
    if state == "error" and result.failure is not None:
        return f"{result.failure.error_class}: {result.failure.message}"
    shown = _lost(result) if state == "red" else _open(result) if state == "undecided" else []
    if shown:
        more = f" and {len(shown) - 1} more metrics" if len(shown) > 1 else ""
        return f"{_in_numbers(max(shown, key=_bands))}{more}"
    return result.reason or brief(result.judgements)


def _lost(result: TestResult) -> list[Judgement]:
    return [
        one
        for one in result.judgements
        if one.verdict == Verdict.REGRESSION and not one.waiver and one.change is not None
    ]


def _open(result: TestResult) -> list[Judgement]:
    return [
        one
        for one in result.judgements
        if one.verdict == Verdict.INCONCLUSIVE and one.change is not None
    ]


def _bands(one: Judgement) -> float:
    """How many bands the metric moved."""
    return abs(one.change or 0.0) / (one.band or 1.0)


def _in_numbers(one: Judgement) -> str:
    against = " since the anchor" if one.against == "anchor" else ""
    mark = f", {one.mark}" if one.mark else ""
    return (
        f"{one.metric} {signed(one.metric, one.change)}{against} "
        f"(interval {interval(one)}, band {band(one)}{mark})"
    )


def _of_run(report: RunReport) -> tuple[State, str]:
    """The run's own state: what its tests' verdicts do not tell."""
    verdicts = {one.verdict for one in report.results}
    without = sum(one.why_not == "unfinished" for one in report.results)
    if report.waiver_faults:
        return "red", next(iter(report.waiver_faults))
    status = ExitStatus(report.status) if report.status in set(ExitStatus) else None
    told = {verdict for verdict in verdicts if verdict is not None}
    if status in (None, ExitStatus.INTERNAL_ERROR, ExitStatus.UNWRITABLE):
        return "error", f"exit status {report.status}: {report.meaning}"
    if (status == ExitStatus.ERROR and Verdict.ERROR not in told) or without:
        return "error", f"{report.meaning}; {without} of {len(report.results)} without a result"
    if status == ExitStatus.NOT_JUDGED and not told:
        return "unjudged", report.meaning
    return "green", ""


def by_scenario(changed: list[Change]) -> Iterator[tuple[str, list[Change]]]:
    """The changes of each scenario, in the order of its worst; of the run itself under its name."""
    groups: dict[str, list[Change]] = {}
    for one in changed:
        groups.setdefault(one.standing.scenario, []).append(one)
    yield from groups.items()
