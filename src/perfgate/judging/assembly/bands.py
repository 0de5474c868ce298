"""Bands: the loss of a metric that counts in a scenario, its source, and the noise beside it.

The judge, the plan and the lists of scenarios all take them from here. What the noise of a run
widens a band to is known only when it is judged or planned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import percent
from perfgate.judging.rules.documented import LEAST_TOLERANCE
from perfgate.judging.rules.noise import OWN_DOF, OWN_SIGMA, RunNoise
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Scenario

BandSource = Literal["family", "nodes", "scenario", "document"]


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
        family = f"family {lookup(self.metric).family.name}"
        source = {"family": family, "nodes": f"{family}, several nodes"}.get(
            self.source, self.source
        )
        if self.loss is None:
            return "report only"
        if is_accuracy(self.metric):
            return f"{100 * self.loss:.1f} points {source}"
        return f"{percent(self.loss, sign='')} {source}"


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
    by_metric: dict[str, tuple[Band, ...]] = {}
    for metric in scenario.gate.metrics:
        value = documented.get(metric)
        if not is_accuracy(metric) and scenario.gate.reference == "self":
            value = None
        bands = (resolve_band(metric, scenario),)
        by_metric[metric] = (
            bands if value is None else (*bands, resolve_band(metric, scenario, value))
        )
    return by_metric


def noise_of(metric: str, scenario: Scenario, learnt: Mapping[str, RunNoise]) -> RunNoise:
    """The noise of one fresh start: as the hardware's history has it, else the family's."""
    known = learnt.get(metric, RunNoise(sigma_of(metric, scenario)))
    if scenario.gate.noise == "measured":
        return replace(known, dof=OWN_DOF, widen=True)
    return known


def sigma_of(metric: str, scenario: Scenario) -> float:
    """The prior noise of one fresh start; of a machine that shows its own, a weak one."""
    if scenario.gate.noise == "measured":
        return OWN_SIGMA
    return lookup(metric).family.on(scenario.hardware.nodes).sigma
