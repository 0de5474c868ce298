"""Learnt noise: what a scenario's verdicts believe of the noise of a start, from stored history."""

from collections.abc import Iterable

from perfgate.baselines.hardware_noise import NO_HISTORY, HardwareNoise, known_noise
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.gate.noise import OWN_SIGMA
from perfgate.gate.probe import RunNoise
from perfgate.machine.hardware import Machine
from perfgate.scenarios.scenario import Scenario

_MOST_TOLD = 2  # of what was left out


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

    A machine that measures its own noise takes from its history only what a calibration or an
    earlier session showed, in place of the weak prior; without any it is left out here.
    """
    found: dict[str, RunNoise] = {}
    first: dict[str, str] = {}
    for metric in metrics:
        if is_accuracy(metric):
            continue
        itself, family = scenario.gate.noise == "measured", lookup(metric).family
        prior = OWN_SIGMA if itself else family.on(scenario.hardware.nodes).sigma
        shown = first.setdefault(family.name, metric)
        components, left_out = known.components(
            metric if metric in scenario.gate.metrics else shown, prior
        )
        if itself and not components.has_history:
            continue
        found[metric] = RunNoise(
            components.sigma,
            components.between,
            note=_note(components.has_history, left_out),
            differences=components.n_within + components.n_between,
        )
    return found


def _note(has_history: bool, left_out: tuple[str, ...]) -> str:
    parts = [] if has_history else [NO_HISTORY]
    if left_out:
        more = len(left_out) - _MOST_TOLD
        told = [*left_out[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])]
        parts.append(f"noise: left out of the history: {'; '.join(told)}")
    return "; ".join(parts)
