"""Offline throughput: a benchmark with the engine inside itself, without a server."""

from fixtures.measuring import Gate, Measure
from perfgate.scenarios.probe import Probe


def test_offline_throughput(offline_probe: Probe, measure: Measure, gate: Gate) -> None:
    """Throughput and latency of the offline benchmark are no worse than the reference's."""
    gate(measure(offline_probe))
