"""Accuracy: the served model answers an evaluator's questions, one test per task."""

from perfgate.scenarios.probe import Probe
from perfgate.suite.fixtures import Gate, Measure


def test_accuracy(accuracy_probe: Probe, measure: Measure, gate: Gate) -> None:
    """The served model answers no fewer questions right than the baseline did."""
    gate(measure(accuracy_probe))
