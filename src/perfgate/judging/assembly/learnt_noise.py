"""Learnt noise: what a scenario's verdicts believe of the noise of a start, from stored history."""

from collections.abc import Iterable, Iterator, Sequence

from perfgate.baselines.hardware_noise import NO_HISTORY, HardwareNoise, known_noise
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.judging.rules.noise import OWN_SIGMA
from perfgate.judging.rules.probe import RunNoise
from perfgate.machine.hardware import Machine
from perfgate.scenarios.scenario import Scenario

_MOST_TOLD = 2  # of what was left out
_BETWEEN_NODES = 2  # the label of several nodes names them first: ``2x4xGB200``


def read_noise(scenario: Scenario, machine: Machine | None) -> HardwareNoise:
    """All that is stored about the noise of the hardware of `scenario`.

    Without a GPU the hardware's label says nothing of the machine: then only what a machine with
    the same processor and number of cores showed is taken, where `machine` is known.

    Raises:
        InputError: the history's folder could be another user's.
    """
    hardware = scenario.hardware
    facts = machine.fingerprint() if machine and hardware.gpu == "none" else None
    own = scenario.gate.reference == "self"
    return known_noise(hardware.label, own=own, machine=facts, first=scenario.id)


def run_noises(
    known: HardwareNoise, scenario: Scenario, metrics: Iterable[str]
) -> dict[str, RunNoise]:
    """Metric → the noise that the gate goes by; scores have none.

    Metrics that do not gate share the noise of their family's first one.

    A machine that measures its own noise takes from its history what earlier sessions showed, in
    place of the weak prior; without any it is left out here.
    """
    itself, nodes = scenario.gate.noise == "measured", scenario.hardware.nodes
    found = {}
    for metric, shown in _of_first(metrics, scenario.gate.metrics):
        prior = OWN_SIGMA if itself else lookup(metric).family.on(nodes).sigma
        noise, has_history = _learnt(known, shown, prior)
        if has_history or not itself:
            found[metric] = noise
    return found


def noises_on(hardware: str, metrics: Iterable[str]) -> dict[str, RunNoise]:
    """Metric → the noise of a start on a hardware, where only its label is known.

    Args:
        hardware: its label, as in `Hardware.label`.
        metrics: those that matter; scores have none.

    Raises:
        InputError: the history's folder could be another user's.
    """
    known = known_noise(hardware, own=False)
    nodes = int(hardware.split("x")[0]) if hardware.count("x") == _BETWEEN_NODES else 1
    return {
        metric: _learnt(known, shown, lookup(metric).family.on(nodes).sigma)[0]
        for metric, shown in _of_first(metrics)
    }


def _of_first(metrics: Iterable[str], gating: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Each speed, and the metric whose history speaks for it: its own where it gates, else that of
    its family's first one.
    """
    first: dict[str, str] = {}
    for metric in metrics:
        if not is_accuracy(metric):
            shown = first.setdefault(lookup(metric).family.name, metric)
            yield metric, metric if metric in gating else shown


def _learnt(known: HardwareNoise, metric: str, prior: float) -> tuple[RunNoise, bool]:
    """The noise in `metric`, and whether any history stands behind it."""
    components, left_out = known.components(metric, prior)
    noise = RunNoise(
        components.sigma,
        components.between,
        note=_note(components.has_history, left_out),
        differences=components.n_within + components.n_between,
    )
    return noise, components.has_history


def _note(has_history: bool, left_out: tuple[str, ...]) -> str:
    parts = [] if has_history else [NO_HISTORY]
    if left_out:
        more = len(left_out) - _MOST_TOLD
        told = [*left_out[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])]
        parts.append(f"noise: left out of the history: {'; '.join(told)}")
    return "; ".join(parts)
