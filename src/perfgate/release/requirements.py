"""Requirements: the tests that a policy requires, out of all that the suite has. Pure."""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfgate.campaign.selection import Selected
from perfgate.campaign.suite_tests import selected_with, suite_tests
from perfgate.core.metrics import is_accuracy
from perfgate.core.plain import to_plain
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.release.policy import Floor, Policy, Required
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class SuiteTests:
    """What can be measured.

    Attributes:
        scenarios: all scenarios.
        claims: all claims about them, those of their floors among them.
        markers: every marker that is declared.
        has_document: whether a test's document names a value for it; None: that is not looked at.
    """

    scenarios: Sequence[Scenario]
    claims: Sequence[ClaimProbe]
    markers: Collection[str]
    has_document: Callable[[Selected], bool] | None = None

    @cached_property
    def tests(self) -> dict[str, tuple[Selected, tuple[str, ...]]]:
        """Id → the test with its markers."""
        return {one.id: (one, given) for one, given in suite_tests(self.scenarios, self.claims)}

    def of_scenario(self, name: str) -> list[Selected]:
        """All that is about one scenario alone: its probes, its curve, claims without another."""
        return [
            one
            for one, _ in self.tests.values()
            if one.scenario.id == name
            and not (isinstance(one, ClaimProbe) and one.versus is not None)
        ]


@dataclass(frozen=True)
class RequiredTest:
    """One test that one part of the policy requires.

    Attributes:
        required: that part.
        subject: the probe, curve or claim.
        hardware: label that it must be measured on.
        floors: numbers that it must reach.
        max_age_days: the oldest that its run may be.
    """

    required: Required
    subject: Selected
    hardware: str
    floors: tuple[Floor, ...]
    max_age_days: float


def is_speed(subject: Selected) -> bool:
    """Whether fresh starts are its evidence: answers are the same at every start."""
    if isinstance(subject, Probe):
        return subject.is_load
    return not (isinstance(subject, ClaimProbe) and is_accuracy(subject.claim.metric))


def required_tests(policy: Policy, suite: SuiteTests) -> tuple[RequiredTest, ...]:
    """The tests of every part of the policy, in its order; one that two parts require, twice.

    Args:
        policy: without `suite_rules.broken_suite_rules`.
        suite: what can be measured.
    """
    return tuple(
        RequiredTest(
            required,
            subject,
            required.hardware or subject.scenario.hardware.label,
            tuple(one for one in required.floors if one.test == subject.id),
            policy.max_age_days if required.max_age_days is None else required.max_age_days,
        )
        for required in policy.required
        for subject in chosen_tests(required, suite)
    )


def required_sha256(policy: Policy, suite: SuiteTests) -> str:
    """SHA-256 of what a policy requires: ids, and all that their scenarios and claims say.

    A suite with fewer tests, other bands or another workload gives another one. So may another
    release of perfgate, whose scenarios have fields more.

    Args:
        policy: without `suite_rules.broken_suite_rules`.
        suite: what can be measured.
    """
    tests = {one.subject.id: one.subject for one in required_tests(policy, suite)}
    claims = {name: one for name, one in tests.items() if isinstance(one, ClaimProbe)}
    named = {one.scenario.id for one in tests.values()}
    named |= {side for one in claims.values() for side in one.claim.sides}
    # Where a file lies says nothing of what is in it.
    scenarios = [replace(one, file=None) for one in suite.scenarios if one.id in named]
    said = {
        "tests": sorted(tests),
        "scenarios": sorted((to_plain(one) for one in scenarios), key=lambda one: str(one["id"])),
        "claims": {name: to_plain(one.claim) for name, one in claims.items()},
    }
    text = json.dumps(said, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def chosen_tests(required: Required, suite: SuiteTests) -> list[Selected]:
    """The tests that one part of a policy selects; each once.

    Raises:
        InputError, SeveralInputErrors: its expression is malformed, or names unknown markers.
    """
    found: dict[str, Selected] = {}
    if required.select:
        tests = list(suite.tests.values())
        found |= {one.id: one for one in selected_with(required.select, tests, suite.markers)}
    for name in required.tests:
        of_name = [suite.tests[name][0]] if name in suite.tests else suite.of_scenario(name)
        found |= {one.id: one for one in of_name}
    return list(found.values())
