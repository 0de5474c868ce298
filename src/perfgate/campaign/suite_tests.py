"""Suite tests: all that the suite can be run for, each with the markers that select it.

What pytest selects with `-m` can so be known without pytest.
"""

from collections.abc import Collection, Iterator, Sequence

from perfgate.campaign.selection import Selected
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.suggestion import did_you_mean
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import CLAIM, markers_of
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.selection import left_out
from perfgate.verdicts.claims import ClaimProbe
from perfgate.verdicts.sweeps import sweep_probes


def suite_tests(
    scenarios: Sequence[Scenario], claims: Sequence[ClaimProbe]
) -> list[tuple[Selected, tuple[str, ...]]]:
    """Every test of the suite with its markers: probes, curves, then claims."""
    found: list[tuple[Selected, tuple[str, ...]]] = []
    for scenario in scenarios:
        markers = markers_of(scenario)
        found += [(one, markers) for one in all_probes(scenario)]
        found += [(one, markers) for one in sweep_probes(scenario)]
    return found + [(one, markers_of_claim(one)) for one in claims]


def markers_of_claim(claim: ClaimProbe) -> tuple[str, ...]:
    """The markers of both sides, and its own: a claim is selected with either side."""
    return (*_markers_of_sides(claim), CLAIM)


def _markers_of_sides(claim: ClaimProbe) -> Iterator[str]:
    yield from dict.fromkeys(one for probe in claim.probes for one in markers_of(probe.scenario))


def selected_with(
    expression: str,
    tests: Sequence[tuple[Selected, tuple[str, ...]]],
    declared: Collection[str],
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
