"""Histories: of a report's gating metrics, from stored baselines and earlier runs.

Pure but for `gathered_histories`, which reads stores and run folders. `perfgate report` and
``pytest --html`` both call it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from perfgate.baselines.baseline import Baseline
from perfgate.baselines.choice import in_order, newest_build
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.store import Store, rehearsal_store, suite_store
from perfgate.core.errors import InputError
from perfgate.core.measurement import MeasuredBuild, MeasuredMetric
from perfgate.core.redaction import visible
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.measured import central_value
from perfgate.reports.figures import known, unit_of
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.runs.ended_run import earlier_runs
from perfgate.runs.record import ComparableStart, MeasuredTest, Record, records_of

# A stored baseline; the anchor, a baseline that stays the last release's; an earlier run; this run.
PointKind = Literal["baseline", "anchor", "run", "this run"]


class HistoryPoint(Struct, frozen=True):
    """A metric at one commit.

    Attributes:
        commit: of the engine.
        version: release of the engine.
        at: when it was measured, ISO 8601.
        value: central value over the fresh starts, in the metric's unit.
        values: one per fresh start.
        kind: what it is from.
        source: id of the run, or who accepted the baseline and when, in words.
        synthetic: whether mock programs made it.
        note: what a person decided beside accepting it: a loss accepted, a baseline retired.
        segment: points of different segments were not measured alike, and are not joined.
    """

    commit: str
    version: str
    at: str
    value: float
    values: tuple[float, ...]
    kind: PointKind
    source: str
    synthetic: bool = False
    note: str = ""
    segment: int = 0


@dataclass(frozen=True)
class MetricHistory:
    """One metric of one probe over commits.

    Attributes:
        name: of the probe.
        metric: canonical name.
        unit: of all values.
        points: in the order of the engine's commits where that is known, else of days.
        order: in words, which of both it is.
    """

    name: str
    metric: str
    unit: str
    points: tuple[HistoryPoint, ...]
    order: str


BY_COMMITS = "engine commits, oldest first"
BY_DAYS = "engine commits, by day of measurement"
MOST_POINTS = 40  # of one history: the newest, and the anchor

_UNJUDGED = 2  # metrics of a probe that nothing was compared with

# Of commits and the newest of them: how many commits each is before it, where it is.
Distances = Callable[[Sequence[str], str], Mapping[str, int]]
_NEVER = "9999"  # after every day
_OF_MACHINE = ("cores", "cpu")  # equal only where a machine is its own reference


@dataclass(frozen=True)
class StoredBaselines:
    """What is stored of one scenario.

    Attributes:
        baselines: all of them, also superseded and retired ones.
        anchor: commit of the anchor; empty: there is none.
    """

    baselines: tuple[Baseline, ...]
    anchor: str = ""


class FoundPoint(Struct, frozen=True):
    """A point, and what it takes to put it among others.

    Attributes:
        point: its segment is not known yet.
        runs: ids of the runs behind it.
        facts: that must be equal for values to be compared; None: not known.
    """

    point: HistoryPoint
    runs: frozenset[str]
    facts: Mapping[str, str] | None


# Name of a probe and metric → what a run measured of it.
RunPoints = Mapping[tuple[str, str], FoundPoint]


def histories_of(
    report: RunReport,
    stored: Mapping[str, StoredBaselines],
    runs: Iterable[RunPoints] = (),
    distances: Distances | None = None,
) -> tuple[MetricHistory, ...]:
    """The history of each gating metric of each probe, where more than this run is known of it.

    Args:
        report: this run.
        stored: scenario → its baselines, of the kind (synthetic or not) that the report is.
        runs: `points_of` earlier ones, of that kind too.
        distances: tells the order of commits; None: it is not known.
    """
    started = {run.id: run.started for run in report.runs}
    earlier = list(runs)
    found = []
    for result in report.results:
        for metric in gating(result):
            points = [
                *_of_baselines(stored.get(result.scenario), result.probe, metric),
                *(one[result.name, metric] for one in earlier if (result.name, metric) in one),
            ]
            points = _once(points)
            if not points:
                continue
            points += _of_this(result, metric, started.get(result.run, ""))
            ordered, order = _in_order(points, distances)
            found.append(
                MetricHistory(
                    result.name, metric, unit_of(metric), _joined(_newest(ordered)), order
                )
            )
    return tuple(found)


def gating(result: TestResult) -> tuple[str, ...]:
    """The metrics that decide a probe; none of a claim or of a comparison of two builds.

    Where nothing was judged, those measured first: the gate's come before all others.
    """
    if any(one.against in ("claim", "ab") for one in result.judgements):
        return ()
    judged = dict.fromkeys(judgement.metric for judgement in result.judgements)
    if judged:
        return tuple(judged)
    measured = ((one.metric, known(one.metric)) for one in result.measured)
    banded = [name for name, metric in measured if metric and metric.family.band is not None]
    return tuple(banded[:_UNJUDGED])


def _of_baselines(stored: StoredBaselines | None, probe: str, metric: str) -> Iterator[FoundPoint]:
    if stored is None:
        return
    for baseline in stored.baselines:
        entry = baseline.entries.get(probe)
        values = entry.values(metric) if entry else []
        if entry is None or not values:
            continue
        notes = [f"loss accepted: {baseline.regression}"] if baseline.regression else []
        notes += (
            [f"retired by {baseline.retired.by}: {baseline.retired.reason}"]
            if baseline.retired
            else []
        )
        runs = frozenset(run.run for run in entry.runs)
        text = f"accepted by {baseline.accepted_by} on {baseline.accepted_at[:10]}"
        point = HistoryPoint(
            baseline.engine.commit,
            baseline.engine.version,
            max(run.started for run in entry.runs),
            central_value(metric, values),
            tuple(values),
            "anchor" if baseline.engine.commit == stored.anchor else "baseline",
            f"{text}, measured in {', '.join(sorted(runs))}",
            baseline.synthetic,
            "; ".join(notes),
        )
        yield FoundPoint(point, runs, entry.fingerprint)


def points_of(
    facts: Mapping[str, Any], records: Sequence[Record], wanted: Mapping[str, Collection[str]]
) -> RunPoints:
    """What an earlier run measured, but for what had something injected.

    Args:
        facts: content of its ``run.json``.
        records: those that count.
        wanted: name of a test → the metrics that a history is shown of.
    """
    comparable = {
        (one.scenario, one.probe): _comparable(one)
        for one in records_of(ComparableStart, records)
        if one.role == "new"
    }
    run, started = str(facts["id"]), str(facts["started"])
    found = {}
    for record in records_of(MeasuredTest, records):
        build, metrics = record.build, wanted.get(record.name, ())
        if build is None or record.injected:
            continue
        for measured in record.measured:
            if measured.metric not in metrics:
                continue
            point = _of_run(build, measured, started, run, record.synthetic, "run")
            alike = comparable.get((record.scenario, record.probe))
            found[record.name, measured.metric] = FoundPoint(point, frozenset({run}), alike)
    return found


def _of_run(
    build: MeasuredBuild,
    metric: MeasuredMetric,
    started: str,
    run: str,
    synthetic: bool,
    kind: PointKind,
) -> HistoryPoint:
    values = metric.value, metric.values
    return HistoryPoint(
        build.commit, build.version, started, *values, kind, f"run {run}", synthetic
    )


def _comparable(measurement: ComparableStart) -> Mapping[str, str]:
    """The facts that would be kept in a baseline."""
    facts = measurement.fingerprint
    if measurement.machine_bound:
        return facts
    return {name: told for name, told in facts.items() if name not in _OF_MACHINE}


def _once(points: Sequence[FoundPoint]) -> list[FoundPoint]:
    """Without the runs that a baseline of the same commit was made of."""
    accepted = {
        (point.point.commit, run)
        for point in points
        if point.point.kind != "run"
        for run in point.runs
    }
    return [
        one
        for one in points
        if one.point.kind != "run"
        or not any((one.point.commit, run) in accepted for run in one.runs)
    ]


def _of_this(result: TestResult, metric: str, started: str) -> list[FoundPoint]:
    measured = next((one for one in result.measured if one.metric == metric), None)
    if measured is None or result.build is None:
        return []
    point = _of_run(result.build, measured, started, result.run, result.synthetic, "this run")
    # Where this run is compared with the baseline, it was measured like it.
    alone = {"": result.run} if result.verdict is Verdict.NOT_COMPARABLE else None
    return [FoundPoint(point, frozenset({result.run}), alone)]


def _in_order(
    points: Sequence[FoundPoint], distances: Distances | None
) -> tuple[list[FoundPoint], str]:
    """Oldest first; this run last among those of its commit and day."""

    def by_day(one: FoundPoint) -> tuple[str, bool]:
        return one.point.at or _NEVER, one.point.kind == "this run"

    last = points[-1].point
    commits = sorted({point.point.commit for point in points})
    before = distances(commits, last.commit) if distances and last.kind == "this run" else {}
    if set(commits) <= before.keys():
        return sorted(points, key=lambda one: (-before[one.point.commit], by_day(one))), BY_COMMITS
    return sorted(points, key=by_day), BY_DAYS


def _newest(points: Sequence[FoundPoint]) -> list[FoundPoint]:
    """The last `MOST_POINTS`, and the anchor even where it is older."""
    kept = points[-MOST_POINTS:]
    return [*(point for point in points[:-MOST_POINTS] if point.point.kind == "anchor"), *kept]


def _joined(points: Sequence[FoundPoint]) -> tuple[HistoryPoint, ...]:
    """The points with their segments: a new one begins where a fact differs from those before."""
    found = []
    segment, facts = 0, None
    for point in points:
        if point.facts is not None:
            if facts is not None and point.facts != facts:
                segment += 1
            facts = point.facts
        found.append(replace(point.point, segment=segment))
    return tuple(found)


def gathered_histories(
    report: RunReport,
    store: Store | None = None,
    folder: Path | None = None,
    repo: EngineRepo | None = None,
) -> tuple[tuple[MetricHistory, ...], tuple[str, ...]]:
    """The histories of a report's gating metrics, and what was left out of them, one line each.

    What cannot be read is left out: a report must not fail because of it. What mocks made is
    never beside what was measured: a report of the one kind takes nothing of the other.

    Args:
        report: this run, or several as one.
        store: of baselines; None: the suite's, of a rehearsal that of rehearsals.
        folder: its folders are earlier runs (`--history`); None: none. Runs of the report itself
            are passed over.
        repo: a clone of the engine, which tells the order of commits; None: days tell it.

    Returns:
        for `ReportFormat.histories`; and notes for the terminal, which need no escaping.

    Raises:
        InputError: `folder` is none that can be read.
    """
    if store is None:
        store = rehearsal_store() if report.synthetic else suite_store()
    notes: list[str] = []
    stored = _stored(report, store, notes) if store.synthetic == report.synthetic else {}
    runs = [] if folder is None else _runs(report, folder, notes)
    return histories_of(report, stored, runs, _distances(repo)), tuple(notes)


def _runs(report: RunReport, folder: Path, notes: list[str]) -> Sequence[RunPoints]:
    ids = {one.id for one in report.runs}
    wanted = {result.name: frozenset(gating(result)) for result in report.results}
    runs, left_out = earlier_runs(
        folder,
        lambda run: points_of(run.facts, run.records, wanted),
        synthetic=report.synthetic,
        without=ids,
    )
    notes += left_out
    return runs


def _stored(report: RunReport, store: Store, notes: list[str]) -> Mapping[str, StoredBaselines]:
    efforts = {effort.scenario: effort.hardware for effort in report.efforts}
    found = {}
    for scenario in report.scenarios:
        hardware = scenario.hardware or efforts.get(scenario.id, "")
        if not hardware:
            continue
        try:
            baselines = in_order(store.of_scenario(hardware, scenario.id))
            if baselines:
                anchor = store.anchor(hardware, scenario.id, newest_build(baselines))
                commit = anchor.baseline.engine.commit if anchor else ""
                found[scenario.id] = StoredBaselines(tuple(baselines), commit)
        except InputError as error:
            notes.append(f"{visible(scenario.id)}: no history of its baselines: {error.problem}")
    return found


def _distances(repo: EngineRepo | None) -> Distances | None:
    if repo is None:
        return None

    def known(commits: Sequence[str], newest: str) -> Mapping[str, int]:
        try:
            return repo.ancestors(commits, newest)
        except InputError:  # the clone does not have the build under test
            return {}

    return known
