"""Targets: what the suite can judge, which tells whether a waiver is for anything."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from perfgate.scenarios.scenario import Scenario


class WaiverTarget(Protocol):
    """What gets verdicts: a probe, or the curve of a scenario's points."""

    @property
    def scenario(self) -> Scenario:
        """The scenario it belongs to."""

    @property
    def label(self) -> str:
        """Short name, unique in the scenario."""

    def gating_metrics(self) -> tuple[str, ...]:
        """The metrics that gate there."""


@dataclass(frozen=True)
class Known:
    """What the suite can judge of one scenario.

    Attributes:
        hardware: its label.
        probes: label of each probe → the metrics that gate there.
    """

    hardware: str
    probes: Mapping[str, Sequence[str]]


def known_of(probes: Iterable[WaiverTarget]) -> dict[str, Known]:
    """Scenario id → what can be judged of it."""
    hardware: dict[str, str] = {}
    metrics: dict[str, dict[str, tuple[str, ...]]] = {}
    for probe in probes:
        hardware[probe.scenario.id] = probe.scenario.hardware.label
        metrics.setdefault(probe.scenario.id, {})[probe.label] = probe.gating_metrics()
    return {scenario: Known(label, metrics[scenario]) for scenario, label in hardware.items()}
