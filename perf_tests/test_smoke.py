"""Smoke: the engine gives a first answer; nothing is measured."""

from fixtures.measuring import Gate, Measure
from perfgate.scenarios.probe import Probe


def test_smoke(smoke_probe: Probe, measure: Measure, gate: Gate) -> None:
    """Every prompt gets an answer that is not empty."""
    gate(measure(smoke_probe))
