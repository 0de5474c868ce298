"""Hardware noise: the noise of a start on one hardware, from everything that is stored of it.

Levels of one build in successive sessions come from the baselines that people accepted; differences
within a session from any run whose history was kept, too. Rule: statistics §1.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import accumulate, zip_longest
from pathlib import Path

from perfgate.baselines import anchor
from perfgate.baselines.baseline import NOBODY, SELF, Baseline, Entry
from perfgate.baselines.choice import in_order
from perfgate.baselines.file import read as read_baseline
from perfgate.baselines.noise_history import (
    NoiseRun,
    NoiseSeries,
    content_of,
    is_learnt_from,
    machine_of,
    read_all,
)
from perfgate.baselines.store import Store, suite_store
from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, lookup
from perfgate.core.paths import require_own
from perfgate.core.verdict import counted
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import NoiseComponents, median, noise_components

MOST_BASELINES = 30  # of one hardware that noise is learnt from: the newest files

NO_HISTORY = "noise: the family's prior; no history of this hardware yet"

# A node this many sigma off makes no baseline; its offset is shrunk as if four more sessions had
# shown none, and is not told from fewer than three.
OFFSET_LIMIT = 1.5
_OFFSET_PRIOR = 4
_FEWEST_SESSIONS = 3


@dataclass(frozen=True)
class Observed:
    """One session of one build, as one probe saw it: metric → its values, in order."""

    run: str
    values: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class ProbeHistory:
    """Sessions of what counts as one build of one probe, oldest first.

    Attributes:
        name: scenario and probe, for people.
        sessions: the sessions; of a run's own observations only one, so that no two are compared.
    """

    name: str
    sessions: tuple[Observed, ...]

    def of(self, metric: str) -> list[tuple[float, ...]]:
        """The values of `metric`, session by session, on the log scale.

        Where nothing gave it, those of the first metric of its family that was given: all metrics
        of a family in one start are one observation, not several.

        Raises:
            InputError: a value without a logarithm, or values that cannot be in one unit or never
                move.
        """
        for name in (metric, *_of_family(lookup(metric).family.name)):
            given = [found for one in self.sessions if (found := one.values.get(name))]
            if given:
                break
        else:
            return []
        used = lookup(name)
        flat = scale.badness(used, [value for one in given for value in one], self.name)
        scale.check_unit(used, flat, flat)
        if len(flat) > 1 and min(flat) == max(flat):
            raise InputError(f"every value of {name} is the same")
        ends = [*accumulate(map(len, given))]
        return [flat[end - len(one) : end] for one, end in zip(given, ends, strict=True)]


@cache
def _of_family(family: str) -> tuple[str, ...]:
    return tuple(name for name, one in METRICS.items() if one.family.name == family)


@dataclass(frozen=True)
class NodeOffset:
    """A node that lies apart from the others in one metric.

    Attributes:
        node: its name.
        metric: canonical name.
        offset: how much worse it is, on the log scale; negative is better.
        sessions: how many showed it.
    """

    node: str
    metric: str
    offset: float
    sessions: int

    def __str__(self) -> str:
        change = scale.change(lookup(self.metric), self.offset)
        return (
            f"node {self.node} lies {change:+.1%} off in {self.metric} "
            f"({counted(self.sessions, 'session')})"
        )


@dataclass(frozen=True)
class HardwareNoise:
    """What is known of the noise of one hardware.

    Attributes:
        histories: what it is learnt from.
        unread: files that could not be used, and why.
        offsets: node → metric → its sessions' offsets.
    """

    histories: tuple[ProbeHistory, ...] = ()
    unread: tuple[str, ...] = ()
    offsets: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    _found: dict[tuple[str, float], tuple[NoiseComponents, tuple[str, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def components(self, metric: str, prior: float) -> tuple[NoiseComponents, tuple[str, ...]]:
        """The noise of one start in `metric`, and what was left out of it, and why.

        Args:
            metric: canonical name of a performance metric.
            prior: that of its family on this hardware.
        """
        if (metric, prior) not in self._found:
            usable, left_out = [], list(self.unread)
            for one in self.histories:
                try:
                    usable.append(one.of(metric))
                except InputError as error:
                    left_out.append(f"{one.name}: {error.problem}")
            found = noise_components(usable, prior)
            self._found[metric, prior] = found, tuple(dict.fromkeys(left_out))
        return self._found[metric, prior]

    def far_nodes(self, metrics: Collection[str] | None = None) -> dict[str, NodeOffset]:
        """The nodes that are no place for a baseline, each by the metric in which it is farthest.

        A node is far where |o| > 1.5 σ, o = n/(n+4) · the median over its n sessions of how far
        their level lay above the baseline's; from fewer than three sessions nothing is said.

        Args:
            metrics: those that matter; None: all.
        """
        found: dict[str, NodeOffset] = {}
        for node, by_metric in sorted(self.offsets.items()):
            for metric, seen in sorted(by_metric.items()):
                if len(seen) < _FEWEST_SESSIONS or (metrics is not None and metric not in metrics):
                    continue
                offset = len(seen) / (len(seen) + _OFFSET_PRIOR) * median(seen)
                family = lookup(metric).family.on(1 + node.count(","))
                far = OFFSET_LIMIT * self.components(metric, family.sigma)[0].sigma
                farthest = abs(found[node].offset) if node in found else 0.0
                if abs(offset) > max(far, farthest):
                    found[node] = NodeOffset(node, metric, offset, len(seen))
        return found


def known_noise(
    hardware: str, *, own: bool, machine: Mapping[str, str] | None = None, first: str = ""
) -> HardwareNoise:
    """Everything stored about the noise of `hardware`.

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
    stored, damaged = ([], []) if own else _baselines(suite_store(), hardware, first)
    here = [replace(run, series=_on(run, machine, own=own)) for run in runs]
    histories = (
        *_of_baselines(stored, machine),
        *_of_runs(here, _held_by(stored)),
    )
    return HardwareNoise(histories, (*damaged, *unread), _offsets(here))


def _on(run: NoiseRun, machine: Mapping[str, str] | None, *, own: bool) -> tuple[NoiseSeries, ...]:
    return tuple(one for one in run.series if one.own == own and _is_like(one.machine, machine))


def _is_like(facts: Mapping[str, str], machine: Mapping[str, str] | None) -> bool:
    return machine is None or all(machine.get(name) == value for name, value in facts.items())


def _of_baselines(
    baselines: Sequence[Baseline], machine: Mapping[str, str] | None
) -> Iterable[ProbeHistory]:
    """Accepted baselines; those of one level count as one build, as the gate itself takes them."""
    by_scenario: dict[str, list[Baseline]] = defaultdict(list)
    for one in baselines:
        by_scenario[one.scenario].append(one)
    for scenario, found in by_scenario.items():
        for level in _levels(found):
            entries: dict[tuple[str, str], list[Entry]] = defaultdict(list)
            for one in level:
                for label, entry in one.entries.items():
                    if _is_like(machine_of(entry.fingerprint), machine):
                        entries[label, content_of(entry.fingerprint)].append(entry)
            for (label, _), of_probe in entries.items():
                yield ProbeHistory(f"{scenario}-{label}", _sessions(of_probe))


def _levels(baselines: Sequence[Baseline]) -> Iterable[list[Baseline]]:
    """Baselines in order, parted where one was accepted as better or worse; no retired ones."""
    level: list[Baseline] = []
    for one in in_order(baselines):
        if one.change != "none" or one.accepted_by == SELF:
            yield level
            level = []
        if one.retired is None:
            level.append(one)
    yield level


def _sessions(entries: Sequence[Entry]) -> tuple[Observed, ...]:
    """The runs behind the entries of one probe, in time, one session each."""
    by_run: dict[tuple[int, str], list[tuple[str, Mapping[str, float]]]] = defaultdict(list)
    for number, entry in enumerate(entries):  # starts of two builds are no neighbours
        for run in entry.runs:
            by_run[number, run.run].append((run.started, run.metrics))
    ordered = sorted(by_run.items(), key=lambda item: min(started for started, _ in item[1]))
    found = []
    for (_, run_id), starts in ordered:
        starts = sorted(starts, key=lambda one: one[0])
        shared = set.intersection(*(set(metrics) for _, metrics in starts))
        values = {
            name: tuple(metrics[name] for _, metrics in starts)
            for name in sorted(shared)
            if is_learnt_from(name)
        }
        found.append(Observed(run_id, values))
    return tuple(found)


def _of_runs(
    runs: Sequence[NoiseRun], held: Collection[tuple[str, str, str, str]]
) -> Iterable[ProbeHistory]:
    """What happened within the session of a run; but not what a baseline holds already."""
    for run in runs:
        for one in run.series:
            if (run.run, one.scenario, one.probe, one.build) not in held:
                name = f"{one.scenario}-{one.probe}"
                yield ProbeHistory(name, (Observed(run.run, one.values),))


def _held_by(baselines: Sequence[Baseline]) -> set[tuple[str, str, str, str]]:
    """Run, scenario, probe and build of all that baselines hold."""
    return {
        (run.run, one.scenario, label, one.engine.commit)
        for one in baselines
        for label, entry in one.entries.items()
        for run in entry.runs
    }


def _offsets(runs: Sequence[NoiseRun]) -> dict[str, dict[str, list[float]]]:
    """Node → metric → one offset for each session: the median over its probes."""
    of_session: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for run in runs:
        for one in run.series:
            for metric, offset in one.offsets.items() if one.node else ():
                of_session[one.node, metric, run.run].append(offset)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (node, metric, _), offsets in of_session.items():
        found[node][metric].append(median(offsets))
    return found


def _baselines(store: Store, hardware: str, first: str) -> tuple[list[Baseline], list[str]]:
    """The newest baselines of every scenario on a hardware, and which could not be read."""
    folder = store.folder / hardware
    scenarios: dict[str, list[Path]] = defaultdict(list)
    for path in folder.glob("*/*.json"):
        if not path.name.startswith(".") and path.stem != anchor.NAME:
            scenarios[path.parent.name].append(path)
    in_order_of_turn = sorted(scenarios, key=lambda name: (name != first, name))
    groups = [
        sorted(scenarios[name], key=lambda one: (-_changed(one), one.name))
        for name in in_order_of_turn
    ]
    in_turn = [one for turn in zip_longest(*groups) for one in turn if one is not None]
    found, damaged = [], []
    for path in in_turn[:MOST_BASELINES]:
        try:
            one = _unchanged(require_own(path))
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


def _unchanged(path: Path) -> Baseline:
    try:
        seen = path.stat()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    return _read_once(path.absolute(), seen.st_mtime_ns, seen.st_size, seen.st_ino)


@lru_cache(maxsize=1024)
def _read_once(path: Path, _mtime_ns: int, _size: int, _inode: int) -> Baseline:
    """The baseline without its answers, which are long and have no noise of their own."""
    found = read_baseline(path)
    entries = {
        label: replace(entry, runs=tuple(replace(run, answers={}) for run in entry.runs))
        for label, entry in found.entries.items()
    }
    return replace(found, entries=entries)
