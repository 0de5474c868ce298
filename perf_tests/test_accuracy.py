"""Accuracy: the served model answers an evaluator's questions, one test per task."""

from fixtures.measuring import Gate, Measure
from perfgate.scenarios.probe import Probe


def test_accuracy(accuracy_probe: Probe, measure: Measure, gate: Gate) -> None:
    """The served model answers no fewer questions right than the baseline did."""
    gate(measure(accuracy_probe))
