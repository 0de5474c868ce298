"""Offline throughput: a benchmark with the engine inside itself, without a server."""

from perfgate.scenarios.probe import Probe
from perfgate.suite.fixtures import Gate, Measure


def test_offline_throughput(offline_probe: Probe, measure: Measure, gate: Gate) -> None:
    """Throughput and latency of the offline benchmark are no worse than the reference's."""
    gate(measure(offline_probe))
