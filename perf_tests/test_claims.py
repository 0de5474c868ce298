"""Claims: what the documents say about a result, or about two results of one session."""

from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.suite.fixtures import Gate, Measure


def test_claim(claim_probe: ClaimProbe, measure: Measure, gate: Gate) -> None:
    """The documented statement holds for this build."""
    gate(measure(claim_probe))
