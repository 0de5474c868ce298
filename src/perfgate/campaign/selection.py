"""Selection: what the tests of a session are about, and which scenarios it measures for them."""

from collections.abc import Iterable

from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.scenarios.probe import Probe

# What a test of the suite is about.
Selected = Probe | ClaimProbe | SweepProbe


def probes_of(one: Selected) -> tuple[Probe, ...]:
    """What it speaks of; of a claim both sides."""
    return (one,) if isinstance(one, Probe) else one.probes


def measured_scenarios(selected: Iterable[Selected]) -> frozenset[str]:
    """Ids of the scenarios that are measured for the selected tests.

    Those with a test of their own are. A claim of which neither side has one has both measured; of
    one side alone, the other is not.
    """
    tests = tuple(selected)
    claims = [one for one in tests if isinstance(one, ClaimProbe)]
    own = {
        probe.scenario.id
        for one in tests
        if not isinstance(one, ClaimProbe)
        for probe in probes_of(one)
    }
    found = set(own)
    for claim in claims:
        if not own.intersection(claim.claim.sides):
            found.update(claim.claim.sides)
    return frozenset(found)
