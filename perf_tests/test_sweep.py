"""Sweeps: all points of a concurrency sweep as one curve, whose mean shows what no point shows."""

from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.suite.fixtures import Gate, Measure


def test_sweep(sweep_probe: SweepProbe, measure: Measure, gate: Gate) -> None:
    """Throughput and latency of the whole sweep are no worse than the baseline's."""
    gate(measure(sweep_probe))
