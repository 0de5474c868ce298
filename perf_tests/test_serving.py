"""Serving: a server under the load of a client, one test per point of the concurrency sweep."""

from perfgate.scenarios.probe import Probe
from perfgate.suite.fixtures import Gate, Measure


def test_serving(load_probe: Probe, measure: Measure, gate: Gate) -> None:
    """Throughput, latency and cost at this point are no worse than the baseline's."""
    gate(measure(load_probe))
