"""Serving: a server under the load of a client, one test per point of the concurrency sweep."""

from fixtures.measuring import Gate, Measure
from perfgate.scenarios.probe import Probe


def test_serving(load_probe: Probe, measure: Measure, gate: Gate) -> None:
    """Throughput, latency and cost at this point are no worse than the baseline's."""
    gate(measure(load_probe))
