"""Probe: one thing measured on an engine: a first answer, a sweep point, an accuracy task."""

from dataclasses import dataclass

from perfgate.scenarios.markers import Kind
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Measurable, Scenario, Smoke


@dataclass(frozen=True, repr=False)
class Probe:
    """What one parametrised test of the suite measures and judges.

    Attributes:
        scenario: the scenario it belongs to.
        what: the first answer, the sweep point or the accuracy task.
    """

    scenario: Scenario
    what: Measurable

    def __hash__(self) -> int:
        return hash(self.id)  # scenarios hold mappings, which have no hash

    def __repr__(self) -> str:
        return f"Probe({self.id})"

    @property
    def label(self) -> str:
        """Short name, unique in the scenario: ``c4``, ``perfgate_arithmetic``."""
        return self.what.task if isinstance(self.what, AccuracyTask) else self.what.label

    @property
    def id(self) -> str:
        """Readable name, unique in the suite: ``local-smollm2-serve-c4``."""
        return f"{self.scenario.id}-{self.label}"

    @property
    def kind(self) -> Kind:
        """Which kind of test it is."""
        if isinstance(self.what, AccuracyTask):
            return "accuracy"
        return "smoke" if isinstance(self.what, Smoke) else "throughput"

    @property
    def is_load(self) -> bool:
        return isinstance(self.what, LoadPoint)

    @property
    def is_smoke(self) -> bool:
        return isinstance(self.what, Smoke)

    def content_hash(self) -> str:
        """What shapes this probe's measurement; baselines of another hash do not compare."""
        return self.scenario.content_hash(self.what)

    def gating_metrics(self) -> tuple[str, ...]:
        """The metrics of the scenario's gate that this probe gives."""
        prefix = f"accuracy:{self.label}:"
        return tuple(
            name
            for name in self.scenario.gate.metrics
            if name.startswith(prefix) or (self.is_load and not name.startswith("accuracy:"))
        )


def order(probe: Probe) -> tuple[int, int]:
    """The place of a probe among those of a start: what is cheap and can end it comes first.

    Does it answer at all; are the first answers right; then load from low to high, as on the
    reference's starts, where there is only load; all other answers last.
    """
    if isinstance(probe.what, LoadPoint):
        return (2, probe.what.concurrency)
    if isinstance(probe.what, AccuracyTask):
        return (3, 0) if probe.what.limit is None else (1, probe.what.limit)
    return (0, 0)


def load_probes(scenario: Scenario) -> tuple[Probe, ...]:
    """The sweep points, from low to high concurrency."""
    return tuple(Probe(scenario, point) for point in scenario.points())


def all_probes(scenario: Scenario) -> tuple[Probe, ...]:
    """Everything that can be measured of a scenario, in the order it is measured."""
    first = () if scenario.smoke is None else (Probe(scenario, scenario.smoke),)
    tasks = (Probe(scenario, task) for task in scenario.accuracy)
    return (*first, *load_probes(scenario), *tasks)
