"""Bands: the loss of a metric that counts in a scenario, its source, and the noise beside it.

The judge, the plan and the lists of scenarios all take them from here. What the noise of a run
widens a band to is known only when it is judged or planned. The noise of a start is learnt from
what is stored of the hardware.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from typing import Literal

from perfgate.baselines.noise_history import NoiseSeries
from perfgate.baselines.noise_table import noise_table
from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS, is_accuracy, lookup
from perfgate.core.verdict import percent
from perfgate.judging.rules import noise, scale
from perfgate.judging.rules.documented import LEAST_TOLERANCE
from perfgate.machine.hardware import Machine
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Scenario

BandSource = Literal["family", "nodes", "scenario", "document"]
NO_HISTORY = "noise: the family's prior; no history of this hardware yet"

# Of a speed and its family's prior on a hardware: the noise of one start, and what was left out of
# it, and why.
Learnt = Callable[[str, float], tuple[noise.RunNoise, tuple[str, ...]]]

_MOST_TOLD = 2  # of what was left out
_BETWEEN_NODES = 2  # the label of several nodes names them first: ``2x4xGB200``


@dataclass(frozen=True)
class Band:
    """The loss of one metric that counts.

    Attributes:
        metric: canonical name.
        against: what the metric is compared with.
        declared: the loss as declared, as a fraction (accuracy: absolute); None: report only.
        source: "family": the default of the metric's family; "nodes": its default on several nodes,
            where that is another one; "scenario": `gate.bands`; "document": the tolerance of the
            documented value, or the least one that a documented speed has.
    """

    metric: str
    against: Literal["baseline", "documented"]
    declared: float | None
    source: BandSource

    @property
    def loss(self) -> float | None:
        """The declared loss; of a speed against a documented value at least 10 %."""
        if self.against == "documented" and not is_accuracy(self.metric):
            return max(self.declared or 0.0, LEAST_TOLERANCE)
        return self.declared

    def describe(self) -> str:
        """The loss and its source, ``2.0 % family throughput``."""
        if self.loss is None:
            return "report only"
        family = f"family {lookup(self.metric).family.name}"
        source = {"family": family, "nodes": f"{family}, several nodes"}
        points = f"{100 * self.loss:.1f} points"
        loss = points if is_accuracy(self.metric) else percent(self.loss, sign="")
        return f"{loss} {source.get(self.source, self.source)}"


def resolve_band(metric: str, scenario: Scenario, value: DocumentedValue | None = None) -> Band:
    """The band of `metric` in `scenario`.

    In this order: the tolerance of the documented value, the scenario's band, the family's default
    on so many nodes. Against a documented speed it is at least 10 %.

    Args:
        metric: canonical name.
        scenario: the scenario that it is measured in.
        value: the documented value that it is compared with; None: it is compared with a baseline.
    """
    family = lookup(metric).family
    own = family.on(scenario.hardware.nodes)
    declared = own.band
    source: BandSource = "family" if own == family else "nodes"
    if metric in scenario.gate.bands:
        declared, source = scenario.gate.bands[metric], "scenario"
    if value is None:
        return Band(metric, "baseline", declared, source)
    if value.tolerance is not None:
        declared, source = value.tolerance, "document"
    elif not is_accuracy(metric) and (declared or 0.0) < LEAST_TOLERANCE:
        declared, source = LEAST_TOLERANCE, "document"
    return Band(metric, "documented", declared, source)


def band_of(metric: str, scenario: Scenario) -> float | None:
    """The loss of `metric` that counts against a baseline; None: report only."""
    return resolve_band(metric, scenario).loss


def gating_bands(
    scenario: Scenario, documented: Mapping[str, DocumentedValue]
) -> dict[str, tuple[Band, ...]]:
    """Each gating metric → its band against a baseline, then that against a documented value.

    The second is left out where nothing is documented, or the machine measures its own speed.

    Args:
        scenario: the scenario.
        documented: what is documented for it: metric → value.
    """
    by_metric = {}
    for metric in scenario.gate.metrics:
        values = [None, documented.get(metric)]
        if values[1] is None or (not is_accuracy(metric) and scenario.gate.reference == "self"):
            values = [None]
        by_metric[metric] = tuple(resolve_band(metric, scenario, value) for value in values)
    return by_metric


def noise_of(
    metric: str, scenario: Scenario, learnt: Mapping[str, noise.RunNoise]
) -> noise.RunNoise:
    """The noise of one fresh start: as the hardware's history has it, else the family's."""
    known = learnt.get(metric, noise.RunNoise(sigma_of(metric, scenario)))
    if scenario.gate.noise == "measured":
        return replace(known, dof=noise.OWN_DOF, widen=True)
    return known


def sigma_of(metric: str, scenario: Scenario) -> float:
    """The prior noise of one fresh start; of a machine that shows its own, a weak one."""
    if scenario.gate.noise == "measured":
        return noise.OWN_SIGMA
    return lookup(metric).family.on(scenario.hardware.nodes).sigma


def known_noise(table: Sequence[NoiseSeries] = (), unread: Sequence[str] = ()) -> Learnt:
    """What is known of the noise of one hardware.

    Args:
        table: what it is learnt from, as `noise_table` gives it.
        unread: files that could not be used, and why.
    """
    # The sessions of one build of one test, in time.
    histories: dict[tuple[str, ...], list[NoiseSeries]] = defaultdict(list)
    for row in table:
        histories[row.scenario, row.probe, row.content, row.build].append(row)

    @cache
    def learn(metric: str, prior: float) -> tuple[noise.RunNoise, tuple[str, ...]]:
        family, usable, left_out = lookup(metric).family.name, [], list(unread)
        names = [metric, *(name for name, one in METRICS.items() if one.family.name == family)]
        for (scenario, probe, *_), sessions in histories.items():
            try:
                usable.append(_losses(sessions, names, f"{scenario}-{probe}"))
            except InputError as error:
                left_out.append(f"{scenario}-{probe}: {error.problem}")
        return noise.learnt_noise(usable, prior), tuple(dict.fromkeys(left_out))

    return learn


def _losses(
    sessions: Sequence[NoiseSeries], names: Sequence[str], place: str
) -> list[tuple[float, ...]]:
    """The values of the first metric of `names` that a session has, by session, on the log scale.

    The others are of its family, and stand in where no session has it: all metrics of a family in
    one start are one observation, not several.

    Raises:
        InputError: a value without a logarithm, or values that cannot be in one unit or never move.
    """
    used = next((name for name in names if any(row.values.get(name) for row in sessions)), None)
    if used is None:
        return []
    values = [of_session for row in sessions if (of_session := row.values.get(used))]
    flat = scale.log_loss(lookup(used), [one for of_session in values for one in of_session], place)
    scale.check_unit(lookup(used), flat, flat)
    if len(flat) > 1 and min(flat) == max(flat):
        raise InputError(f"every value of {used} is the same")
    ends = accumulate(map(len, values))
    return [flat[end - len(one) : end] for one, end in zip(values, ends, strict=True)]


def read_noise(scenario: Scenario, machine: Machine | None) -> Learnt:
    """All that is stored about the noise of the hardware of `scenario`; read when it is asked for.

    Without a GPU the hardware's label says nothing of the machine: then only what a machine with
    the same processor and number of cores showed is taken, where `machine` is known.

    Raises:
        InputError: the history's folder could be another user's.
    """
    hardware = scenario.hardware
    facts = machine.fingerprint() if machine and hardware.gpu == "none" else None
    own = scenario.gate.reference == "self"
    table = partial(noise_table, hardware.label, own=own, machine=facts, first=scenario.id)
    known = cache(lambda: known_noise(*table()))
    return lambda metric, prior: known()(metric, prior)


def run_noises(
    known: Learnt, scenario: Scenario, metrics: Iterable[str]
) -> dict[str, noise.RunNoise]:
    """Metric → the noise that the gate goes by; scores have none.

    Metrics that do not gate share the noise of their family's first one.

    A machine that measures its own noise takes from its history what earlier sessions showed, in
    place of the weak prior; without any it is left out here.
    """
    prior = partial(sigma_of, scenario=scenario)
    noises = _learnt(known, metrics, prior, scenario.gate.metrics)
    if scenario.gate.noise == "measured":
        return {metric: one for metric, one in noises.items() if one.differences}
    return noises


def noises_on(hardware: str, metrics: Iterable[str]) -> dict[str, noise.RunNoise]:
    """Metric → the noise of a start on a hardware, where only its label is known.

    Args:
        hardware: its label, as in `Hardware.label`.
        metrics: those that matter; scores have none.

    Raises:
        InputError: the history's folder could be another user's.
    """
    known = known_noise(*noise_table(hardware, own=False))
    nodes = int(hardware.split("x")[0]) if hardware.count("x") == _BETWEEN_NODES else 1
    return _learnt(known, metrics, lambda metric: lookup(metric).family.on(nodes).sigma)


def _learnt(
    known: Learnt,
    metrics: Iterable[str],
    prior: Callable[[str], float],
    gating: Sequence[str] = (),
) -> dict[str, noise.RunNoise]:
    """Each speed → its noise, with a note of what history stands behind it.

    The history that speaks for it is its own where it gates, else that of its family's first one.
    """
    first: dict[str, str] = {}
    noises = {}
    for metric in metrics:
        if is_accuracy(metric):
            continue
        shown = first.setdefault(lookup(metric).family.name, metric)
        shown = metric if metric in gating else shown
        learnt, left_out = known(shown, prior(metric))
        notes = [] if learnt.differences else [NO_HISTORY]
        if left_out:
            more = len(left_out) - _MOST_TOLD
            listed = [*left_out[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])]
            notes.append(f"noise: left out of the history: {'; '.join(listed)}")
        noises[metric] = replace(learnt, note="; ".join(notes))
    return noises
