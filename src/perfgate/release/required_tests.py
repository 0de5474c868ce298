"""Required tests: those that a policy requires, and what it asks that no test gives. Pure."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

from perfgate.campaign.selection import Selected, selected_with, suite_tests
from perfgate.core.errors import InputError, SeveralInputErrors, did_you_mean
from perfgate.core.metrics import is_accuracy
from perfgate.core.plain import to_plain
from perfgate.judging.assembly.claims import ClaimProbe, claims_of_suite
from perfgate.release.policy import Policy, Required
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.metric_rules import unmeasured_metric
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.scenario import Scenario

_SHOWN = 3  # ids in a line


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

    @classmethod
    def of(cls, suite: LoadedSuite, has_document: Callable[[Selected], bool] | None = None) -> Self:
        """What can be measured of the scenarios and claims of files."""
        return cls(suite.scenarios, claims_of_suite(suite), suite.markers, has_document)

    @cached_property
    def tests(self) -> dict[str, tuple[Selected, tuple[str, ...]]]:
        """Id → the test with its markers."""
        return {one.id: (one, given) for one, given in suite_tests(self.scenarios, self.claims)}

    def of_scenario(self, name: str) -> list[Selected]:
        """All that is about one scenario alone: its probes, its curve, claims without another."""
        return [
            one
            for one, _ in self.tests.values()
            if one.scenario.id == name and not (isinstance(one, ClaimProbe) and len(one.probes) > 1)
        ]


class RequiredTest(NamedTuple):
    """One test that one part of the policy requires.

    Attributes:
        required: that part.
        subject: the probe, curve or claim.
    """

    required: Required
    subject: Selected

    @property
    def hardware(self) -> str:
        """Label that it must be measured on: its scenario's, which the part may say too."""
        return self.subject.scenario.hardware.label


def is_speed(subject: Selected) -> bool:
    """Whether fresh starts are its evidence: answers are the same at every start."""
    if isinstance(subject, Probe):
        return subject.is_load
    return not (isinstance(subject, ClaimProbe) and is_accuracy(subject.claim.metric))


def gated_metrics(subject: Selected) -> list[str]:
    """The metrics that its verdict is of; none: a first answer, which passes by being right."""
    if isinstance(subject, ClaimProbe):
        return [subject.claim.metric]
    return list(subject.gating_metrics())


def required_tests(policy: Policy, suite: SuiteTests) -> tuple[RequiredTest, ...]:
    """The tests of every part of the policy, in its order; one that two parts require, twice.

    Args:
        policy: without `broken_suite_rules`.
        suite: what can be measured.
    """
    return tuple(
        RequiredTest(required, subject)
        for required in policy.required
        for subject in chosen_tests(required, suite)
    )


def required_sha256(required: Iterable[RequiredTest], suite: SuiteTests) -> str:
    """SHA-256 of what is required: ids, and all that their scenarios and claims say.

    A suite with fewer tests, other bands or another workload gives another one. So may another
    release of perfgate, whose scenarios have fields more.

    Args:
        required: the tests.
        suite: what can be measured.
    """
    tests = {one.subject.id: one.subject for one in required}
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


def broken_suite_rules(policy: Policy, suite: SuiteTests) -> Iterator[Problem]:
    """All that the policy asks of the suite and the suite does not have, or cannot give."""
    problems = list(_broken_groups(policy, suite))
    yield from problems
    if policy.required_sha256 and not problems:
        digest = required_sha256(required_tests(policy, suite), suite)
        if digest != policy.required_sha256:
            yield Problem(
                ("required_sha256",),
                "the suite has other tests, or other scenarios, than the policy requires",
                digest,
                policy.required_sha256,
                "take the scenario files that the policy was written for; or, where the change is "
                "meant, look at it and write the found digest into the policy",
            )


def _broken_groups(policy: Policy, suite: SuiteTests) -> Iterator[Problem]:
    for number, required in enumerate(policy.required):
        path: Keys = ("required", number)
        if problems := list(_unknown_names(path, required, suite)):
            yield from problems
            continue  # what is chosen is not known, and nothing can be said of it
        chosen = chosen_tests(required, suite)
        if not chosen:
            yield Problem(
                (*path, "select"),
                "selects nothing",
                f"no test of the suite in {required.name}",
                hint="`perfgate scenarios list -m EXPRESSION` shows what it selects; templates are "
                "chosen by naming their own marker",
            )
            continue
        yield from _of_another_place(path, policy.build.engine, required, chosen)
        yield from _unreachable_floors(path, required, chosen)
        yield from _too_much(path, required, chosen, suite)


def _unknown_names(path: Keys, required: Required, suite: SuiteTests) -> Iterator[Problem]:
    if required.select:
        try:
            selected_with(required.select, (), suite.markers)
        except SeveralInputErrors as error:
            yield from (Problem.of((*path, "select"), one) for one in error.errors)
        except InputError as error:
            yield Problem.of((*path, "select"), error)
    known = [*suite.tests, *(one.id for one in suite.scenarios)]
    for place, name in enumerate(required.tests):
        if name not in known:
            hint = did_you_mean(name, known) or "`perfgate scenarios list` names the scenarios"
            at = (*path, "tests", place)
            yield Problem(at, "no scenario or test of that id", name, hint=hint)


def _of_another_place(
    path: Keys, engine: str, required: Required, chosen: Sequence[Selected]
) -> Iterator[Problem]:
    """Tests of another engine than the build's, or of other hardware than the group's."""
    engines = {one.id: one.scenario.engine.name for one in chosen}
    hardware = {one.id: one.scenario.hardware.label for one in chosen}
    for at, what, wanted, given in (
        (path, "another engine than the build's", engine, engines),
        ((*path, "hardware"), "other hardware than the group's", required.hardware, hardware),
    ):
        others = [f"{test} ({name})" for test, name in given.items() if wanted and name != wanted]
        if others:
            expected = f"tests of {wanted} alone"
            yield Problem(at, f"tests of {what}", _shown(others), expected, "select without them")


def _unreachable_floors(
    path: Keys, required: Required, chosen: Sequence[Selected]
) -> Iterator[Problem]:
    by_id = {one.id: one for one in chosen}
    for place, floor in enumerate(required.floors):
        at: Keys = (*path, "floors", place)
        if floor.test in by_id:
            yield from _not_given(by_id[floor.test], floor.metric, (*at, "metric"))
        else:
            hint = did_you_mean(floor.test, by_id)
            problem = "floor for a test that is not selected"
            yield Problem((*at, "test"), problem, floor.test, hint=hint)


def _not_given(subject: Selected, metric: str, path: Keys) -> Iterator[Problem]:
    """Why the test does not give the metric; nothing: it does."""
    if isinstance(subject, Probe):
        if is_accuracy(metric) and metric.split(":")[1] == subject.label:
            return
        if subject.is_load and not is_accuracy(metric):
            if found := unmeasured_metric(subject.scenario, path, metric):
                yield replace(found, path=path)
            return
    given = gated_metrics(subject)
    if metric not in given:
        problem, expected = "a metric that the test does not give", ", ".join(given) or "none"
        hint = did_you_mean(metric, given)
        yield Problem(path, problem, f"{metric} of {subject.id}", expected, hint)


def _too_much(
    path: Keys, required: Required, chosen: Sequence[Selected], suite: SuiteTests
) -> Iterator[Problem]:
    """More starts than a scenario may have, or documented values where no document has one."""
    limits = [(one.scenario.gate.max_starts, one.scenario.id) for one in chosen if is_speed(one)]
    most, scenario = min(limits, default=(required.starts, ""))
    if required.starts > most:
        problem = "more fresh starts than a scenario may have"
        expected = f"at most {most}, the gate.max_starts of {scenario}"
        yield Problem((*path, "starts"), problem, required.starts, expected)
    if required.documented and suite.has_document and not any(map(suite.has_document, chosen)):
        problem, hint = "no test of the group has a documented value", "give floors instead"
        found = _shown([one.id for one in chosen])
        yield Problem((*path, "documented"), problem, found, hint=hint)


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
