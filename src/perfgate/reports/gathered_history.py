"""Gathered history: the histories that a report shows, read from stores and run folders.

The one module of reports that reads. `perfgate report` and ``pytest --html`` both call it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfgate.baselines.choice import in_order, newest_build
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.store import Store, rehearsal_store, suite_store
from perfgate.core.errors import InputError
from perfgate.core.redaction import visible
from perfgate.reports.histories import (
    Distances,
    RunPoints,
    StoredBaselines,
    gating,
    histories_of,
    points_of,
)
from perfgate.reports.history import MetricHistory
from perfgate.reports.run_report import RunReport
from perfgate.runs.ended_run import earlier_runs


def gathered_histories(
    report: RunReport,
    store: Store | None = None,
    folder: Path | None = None,
    repo: EngineRepo | None = None,
) -> tuple[tuple[MetricHistory, ...], tuple[str, ...]]:
    """The histories of a report's gating metrics, and what was left out of them, one line each.

    What cannot be read is left out: a report must not fail because of it. What stand-ins made is
    never beside what was measured: a report of the one kind takes nothing of the other.

    Args:
        report: this run, or several as one.
        store: of baselines; None: the suite's, of a rehearsal that of rehearsals.
        folder: its folders are earlier runs (`--history`); None: none. Runs of the report itself
            are passed over.
        repo: a clone of the engine, which tells the order of commits; None: days tell it.

    Returns:
        for `ReportContext.histories`; and notes for the terminal, which need no escaping.

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
    efforts = {one.scenario: one.hardware for one in report.efforts}
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
