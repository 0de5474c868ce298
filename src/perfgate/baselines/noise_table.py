"""Noise table: everything stored about how far starts differ on one hardware, as rows of one shape.

Levels of one build in successive sessions come from the baselines that people accepted; differences
within a session from any recorded run, too. What is learnt from them: statistics §1.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from perfgate.baselines.baseline import NOBODY, SELF, Baseline, BaselineRun, Entry
from perfgate.baselines.choice import in_order
from perfgate.baselines.file import read
from perfgate.baselines.noise_history import (
    NoiseSeries,
    common_values,
    content_of,
    machine_of,
    read_all,
)
from perfgate.baselines.store import Store, is_baseline, suite_store
from perfgate.core.errors import InputError
from perfgate.core.files.paths import require_own
from perfgate.core.files.remembered import remembered

MOST_BASELINES = 30  # of one hardware that noise is learnt from: the newest files


def noise_table(
    hardware: str, *, own: bool, machine: Mapping[str, str] | None = None, first: str = ""
) -> tuple[list[NoiseSeries], list[str]]:
    """What is stored about the noise of `hardware`, and which files could not be used, and why.

    `build` of a row is what counts as one build: rows of one test, content and build are sessions
    that may be compared, in time. Baselines of one level are one build, as the gate itself takes
    them; of a recorded run each row stands alone.

    Args:
        hardware: the hardware's label.
        own: whether the machine is its own reference: then of its own store, else of the suite's.
        machine: facts of the machine; what another processor or number of cores showed is left
            out. None: all counts, as where a GPU is what matters.
        first: the scenario whose baselines are read first, where there are many.

    Raises:
        InputError: the history's folder could be another user's.
    """
    runs, unread = read_all(hardware, own=own)
    stored, damaged = ([], []) if own else _newest(suite_store(), hardware, first)
    held = {
        (run.run, one.scenario, label, one.engine.commit)
        for one in stored
        for label, entry in one.entries.items()
        for run in entry.runs
    }
    rows = [*_of_baselines(stored)]
    for run in runs:
        rows += [
            replace(one, build=f"{run.run}/{number}")
            for number, one in enumerate(run.series)
            if one.own == own and (run.run, one.scenario, one.probe, one.build) not in held
        ]
    return [row for row in rows if _is_like(row.machine, machine)], [*damaged, *unread]


def _is_like(facts: Mapping[str, str], machine: Mapping[str, str] | None) -> bool:
    return machine is None or all(machine.get(name) == value for name, value in facts.items())


def _of_baselines(baselines: Sequence[Baseline]) -> Iterator[NoiseSeries]:
    by_scenario: dict[str, list[Baseline]] = defaultdict(list)
    for baseline in baselines:
        by_scenario[baseline.scenario].append(baseline)
    for of_scenario in by_scenario.values():
        for level in _levels(of_scenario):
            sessions: dict[tuple[str, str], list[tuple[str, NoiseSeries]]] = defaultdict(list)
            for one in level:
                for label, entry in one.entries.items():
                    content = content_of(entry.fingerprint)
                    row = NoiseSeries(
                        one.scenario,
                        label,
                        content,
                        level[0].engine.commit,
                        {},
                        machine_of(entry.fingerprint),
                    )
                    sessions[label, content] += [
                        (starts[0].started, replace(row, values=_values(starts)))
                        for starts in _sessions(entry)
                    ]
            for of_test in sessions.values():
                yield from (row for _, row in sorted(of_test, key=lambda one: one[0]))


def _levels(baselines: Sequence[Baseline]) -> Iterator[list[Baseline]]:
    """Baselines in order, parted where one was accepted as better or worse; no retired ones."""
    level: list[Baseline] = []
    for one in in_order(baselines):
        if one.change != "none" or one.accepted_by == SELF:
            yield level
            level = []
        if one.retired is None:
            level.append(one)
    yield level


def _sessions(entry: Entry) -> list[list[BaselineRun]]:
    """The starts behind an entry, in time, run by run."""
    by_run: dict[str, list[BaselineRun]] = defaultdict(list)
    for start in sorted(entry.runs, key=lambda run: run.started):
        by_run[start.run].append(start)
    return list(by_run.values())


def _values(starts: Sequence[BaselineRun]) -> dict[str, tuple[float, ...]]:
    return common_values([start.metrics for start in starts])


def _newest(store: Store, hardware: str, first: str) -> tuple[list[Baseline], list[str]]:
    """The newest baselines of every scenario on a hardware, and which could not be read."""
    scenarios: dict[str, list[Path]] = defaultdict(list)
    for path in filter(is_baseline, (store.folder / hardware).glob("*/*.json")):
        scenarios[path.parent.name].append(path)
    groups = [
        sorted(scenarios[name], key=lambda one: (-_changed(one), one.name))
        for name in sorted(scenarios, key=lambda name: (name != first, name))
    ]
    in_turn = [one for turn in zip_longest(*groups) for one in turn if one is not None]
    found, damaged = [], []
    for path in in_turn[:MOST_BASELINES]:
        try:
            one = _read_numbers(require_own(path))
        except InputError as error:
            damaged.append(f"{path.parent.name}/{path.name}: {error.problem}")
            continue
        if one.accepted_by != NOBODY and one.synthetic == store.synthetic:
            found.append(one)
    return found, damaged


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone meanwhile, or a broken link: reading says so
        return 0.0


@remembered(1024)
def _read_numbers(path: Path) -> Baseline:
    """The baseline without its answers, which are long and have no noise of their own."""
    found = read(path)
    entries = {
        label: replace(entry, runs=tuple(replace(run, answers={}) for run in entry.runs))
        for label, entry in found.entries.items()
    }
    return replace(found, entries=entries)
