"""Smoke: the engine gives a first answer; nothing is measured."""

from perfgate.scenarios.probe import Probe
from perfgate.suite.fixtures import Gate, Measure


def test_smoke(smoke_probe: Probe, measure: Measure, gate: Gate) -> None:
    """Every prompt gets an answer that is not empty."""
    gate(measure(smoke_probe))
