"""Selection: what the tests of a session are about, and which scenarios it measures for them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from perfgate.core.errors import InputError, SeveralInputErrors, did_you_mean
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_probes
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import CLAIM, NIGHTLY, WEEKLY, markers_of_test
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import left_out

# What a test of the suite is about.
Selected = Probe | ClaimProbe | SweepProbe


def probes_of(one: Selected) -> tuple[Probe, ...]:
    """What it speaks of; of a claim both sides."""
    return (one,) if isinstance(one, Probe) else one.probes


def scenarios_of(selected: Mapping[str, Selected]) -> dict[str, Scenario]:
    """The scenarios that tests need, by id, in the order of the tests.

    Args:
        selected: test → what it is about.
    """
    probes = (probe for one in selected.values() for probe in probes_of(one))
    return {probe.scenario.id: probe.scenario for probe in probes}


def measured_scenarios(selected: Iterable[Selected]) -> frozenset[str]:
    """Ids of the scenarios that are measured for the selected tests.

    Those with a test of their own are. A claim of which neither side has one has both measured; of
    one side alone, the other is not.
    """
    tests = tuple(selected)
    own = {one.scenario.id for one in tests if not isinstance(one, ClaimProbe)}
    sides = (test.claim.sides for test in tests if isinstance(test, ClaimProbe))
    return frozenset(own.union(*(names for names in sides if own.isdisjoint(names))))


def suite_tests(
    scenarios: Sequence[Scenario], claims: Sequence[ClaimProbe]
) -> list[tuple[Selected, tuple[str, ...]]]:
    """Every test of the suite with its markers: probes, curves, then claims."""
    tests: list[Selected] = []
    for scenario in scenarios:
        tests += [*all_probes(scenario), *sweep_probes(scenario)]
    return [(test, markers_of_selected(test)) for test in (*tests, *claims)]


def markers_of_selected(test: Selected) -> tuple[str, ...]:
    """The markers of one test, sorted.

    A claim has those of both sides, so that it is selected with either. It is `nightly` where both
    sides are, and `weekly` where both have one of the two: else a night would lack a side.
    """
    if not isinstance(test, ClaimProbe):
        return markers_of_test(test.scenario, test.kind)
    sides = [set(markers_of_test(side.scenario, side.kind)) for side in test.probes]
    found = {CLAIM}.union(*sides) - {NIGHTLY, WEEKLY}
    if all(NIGHTLY in side for side in sides):
        found.add(NIGHTLY)
    elif all(side & {NIGHTLY, WEEKLY} for side in sides):
        found.add(WEEKLY)
    return tuple(sorted(found))


def selected_with(
    expression: str, tests: Sequence[tuple[Selected, tuple[str, ...]]], declared: Collection[str]
) -> tuple[Selected, ...]:
    """The tests that `pytest -m EXPRESSION` runs; no template that it does not name.

    Args:
        expression: what ``-m`` says; empty: all.
        tests: of `suite_tests`.
        declared: every marker that may be named.

    Raises:
        InputError: the expression is malformed.
        SeveralInputErrors: it names markers that are declared nowhere.
    """
    if not expression:
        return tuple(one for one, _ in tests if not left_out(one.scenario, ()))
    parsed = parse(expression)
    if unknown := sorted(parsed.names - set(declared)):
        raise SeveralInputErrors(
            [
                InputError(
                    "unknown marker",
                    field="-m",
                    found=name,
                    expected="one of " + ", ".join(sorted(declared)),
                    hint=did_you_mean(name, declared),
                )
                for name in unknown
            ]
        )
    return tuple(
        one
        for one, markers in tests
        if parsed.matches(markers) and not left_out(one.scenario, parsed.names)
    )
