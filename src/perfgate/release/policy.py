"""Policy: what must be measured, how, and judged as what, before a build is released: release.yaml.

Every error has file, line and field. Below are the tests of a suite that a policy requires, and
what it asks that no test gives.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, Self, get_args

from perfgate.campaign.selection import Selected, selected_with, suite_tests
from perfgate.core.errors import InputError, SeveralInputErrors, did_you_mean
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import from_plain, to_plain
from perfgate.judging.assembly.claims import ClaimProbe, claims_of_suite
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.rules.metric_rules import unknown_metric, unmeasured_metric
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import LARGEST_FILE, Keys, Problem, read_document

SCHEMA = Path(__file__).with_name("policy.schema.json")
_SHOWN = 3  # ids in a line

Effect = Literal["pass", "warn", "fail"]
"""What something counts as in the result of a release."""
EFFECTS: tuple[Effect, ...] = get_args(Effect)
"""The worst last."""

STRICT_EFFECTS: Mapping[str, Effect] = dict.fromkeys(
    ("INCONCLUSIVE", "NO_BASELINE", "NOT_COMPARABLE", "WAIVED"), "fail"
)
"""What each counts as where a policy does not say."""


@dataclass(frozen=True)
class ReleasedBuild:
    """The one build that is released; what is None is not asked for.

    Attributes:
        engine: the engine's name.
        version: its release.
        commit: its commit, or the first 12 or more digits of it.
        image: digest of its container image, ``sha256:…``.
    """

    engine: str
    version: str | None = None
    commit: str | None = None
    image: str | None = None

    @property
    def description(self) -> str:
        """``tensorrt-llm 1.3.0, commit 0a1b2c3d4e5f, sha256:…``."""
        name = " ".join(filter(None, (self.engine, self.version)))
        return ", ".join(filter(None, (name, self.commit and f"commit {self.commit}", self.image)))


@dataclass(frozen=True)
class Floor:
    """A number that must be reached, whatever the baseline was.

    Attributes:
        test: id of a probe, as ``b200-…-c1``.
        metric: canonical name.
        limit: in the metric's unit: the least, or of a metric that should be small the most.
    """

    test: str
    metric: str
    limit: float


@dataclass(frozen=True)
class Required:
    """Tests that need a verdict.

    Attributes:
        name: of this group of tests, unique in the policy.
        select: an expression of markers, as pytest's ``-m`` takes it; empty: none.
        tests: ids of scenarios, probes, curves and claims; each scenario stands for all its tests.
        hardware: label that each must have been measured on, as ``8xB200``; empty: the scenario's.
        documented: whether each must also reach the value that its document names.
        floors: numbers that must be reached.
        starts: fresh starts of the build under test, at least.
        max_age_days: the oldest that a run may be; None: as the policy has it.
    """

    name: str
    select: str = ""
    tests: tuple[str, ...] = ()
    hardware: str = ""
    documented: bool = False
    floors: tuple[Floor, ...] = ()
    starts: int = 1
    max_age_days: float | None = None


@dataclass(frozen=True)
class Signer:
    """Who may sign.

    Attributes:
        name: for people.
        key: public key, Ed25519, the base64 of its 32 bytes.
    """

    name: str
    key: str


@dataclass(frozen=True)
class Subject:
    """An artifact that the attestations speak of.

    Attributes:
        name: of the artifact, as the image's reference.
        digest: algorithm → hexadecimal digits, as ``{"sha256": "…"}`` or ``{"gitCommit": "…"}``.
    """

    name: str
    digest: Mapping[str, str]


@dataclass(frozen=True)
class SetAside:
    """A run's REGRESSION of a test that a person found to be none of the build's.

    Attributes:
        run: id of the run.
        test: id of the probe, curve or claim.
        reason: what it was, and how that is known.
        by: who answers for it.
        link: where it is followed up.
    """

    run: str
    test: str
    reason: str
    by: str
    link: str


@dataclass(frozen=True)
class Policy:
    """What a release needs (docs/reference/release_policy.schema.json).

    Attributes:
        release: the name of what is released.
        build: the build that every run must have measured.
        required: what needs a verdict; at least one.
        subjects: what the attestations speak of, beside the build's commit and image.
        effects: what INCONCLUSIVE, NO_BASELINE, NOT_COMPARABLE and WAIVED count as; what is not
            named, as in `STRICT_EFFECTS`.
        max_age_days: the oldest that a run may be.
        false_alarms: the allowed probability that a release without any loss is refused by a false
            REGRESSION.
        signers: who may sign; empty: whoever holds the key that `verify` is given.
        sha256: of the file's bytes.
        set_aside: regressions that do not count, each with a reason; what they are of counts as
            "warn" at best.
        required_sha256: what `required_sha256` must give; empty: it is not looked at.
    """

    release: str
    build: ReleasedBuild
    required: tuple[Required, ...]
    subjects: tuple[Subject, ...] = ()
    effects: Mapping[str, Effect] = field(default_factory=dict)
    max_age_days: float = 7.0
    false_alarms: float = 0.01
    signers: tuple[Signer, ...] = ()
    sha256: str = ""
    set_aside: tuple[SetAside, ...] = ()
    required_sha256: str = ""

    def __post_init__(self) -> None:
        """Complete the effects."""
        object.__setattr__(self, "effects", {**STRICT_EFFECTS, **self.effects})


class PolicyRefused(ReleaseRefused):
    """A policy cannot be used.

    Attributes:
        errors: all that is wrong with it, in the order of its lines; it is told as the first.
    """

    def __init__(self, errors: Sequence[InputError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda error: error.line or 0))
        super().__init__(ReleaseStatus.POLICY, **self.errors[0].arguments)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def load_policy(path: Path, suite: "SuiteTests | None" = None) -> Policy:
    """The policy of a file.

    Args:
        path: the file.
        suite: what can be measured; None: the file is looked at alone.

    Raises:
        InputError: there is no such file.
        PolicyRefused: all that is wrong with it.
    """
    hint = "begin with release.example.yaml (docs/how-to/gate_release.md)"
    if not path.exists():
        raise InputError("no such file", file=path, expected="a release policy", hint=hint)
    fields = "schema_version, release, build and required"
    document, errors = read_document(path, expected=fields, hint=hint)
    if document is None:
        raise PolicyRefused(errors)
    problems = read_schema(SCHEMA, described=True, one_line=True).problems(document.value)
    if not problems and not errors:
        digest = hashlib.sha256(read_input(path, LARGEST_FILE)).hexdigest()
        policy = from_plain(Policy, {**document.value, "sha256": digest})  # type: ignore[dict-item]
        problems = list(broken_policy_rules(policy))
        if suite and not problems:
            problems = list(broken_suite_rules(policy, suite))
        if not problems:
            return policy
    lines = {error.line for error in errors}  # of these something worse is known
    more = [document.error(problem) for problem in problems]
    raise PolicyRefused([*errors, *(error for error in more if error.line not in lines)])


def broken_policy_rules(policy: Policy) -> Iterator[Problem]:
    """All that contradicts itself in a policy."""
    for number, _ in _repeated(one.name for one in policy.required):
        path, expected = ("required", number, "name"), "a name of its own for each group"
        yield Problem(path, "two groups of one name", policy.required[number].name, expected)
    for number, group in enumerate(policy.required):
        if not group.select and not group.tests:
            yield Problem(
                ("required", number),
                "selects nothing",
                f"neither select nor tests in {group.name}",
                "select (an expression of markers), tests (a list of ids), or both",
            )
    yield from _broken_floors(policy)
    commit = policy.build.commit
    for number, subject in enumerate(policy.subjects):
        if commit and not (other := subject.digest.get("gitCommit", commit)).startswith(commit):
            yield Problem(
                ("subjects", number, "digest", "gitCommit"),
                "not the commit of the build",
                other,
                f"one that begins with {commit}, as build.commit says",
            )
    for number, _ in _repeated((one.run, one.test) for one in policy.set_aside):
        aside = policy.set_aside[number]
        found = f"{aside.test} of run {aside.run}"
        yield Problem(("set_aside", number), "set aside twice", found)


def _repeated(keys: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """Position of each key that was there before, and where it was first."""
    first: dict[Hashable, int] = {}
    for number, key in enumerate(keys):
        if first.setdefault(key, number) != number:
            yield number, first[key]


def _broken_floors(policy: Policy) -> Iterator[Problem]:
    floors = [
        (("required", number, "floors", place), floor)
        for number, group in enumerate(policy.required)
        for place, floor in enumerate(group.floors)
    ]
    for path, floor in floors:
        if problem := unknown_metric((*path, "metric"), floor.metric):
            yield problem
        elif lookup(floor.metric).unit == "fraction" and floor.limit > 1:
            found, expected = f"{floor.limit:g}", "a fraction, at most 1"
            yield Problem((*path, "limit"), "out of range", found, expected)
    for again, first in _repeated((floor.test, floor.metric) for _, floor in floors):
        path, floor = floors[again]
        yield Problem(
            (*path, "limit"),
            "two limits for one metric",
            f"{floor.limit:g} for {floor.metric} of {floor.test}",
            f"one limit; {floors[first][1].limit:g} stands before",
            "keep one of the two",
        )


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


def requirements(policy: Policy, suite: SuiteTests) -> tuple[tuple[RequiredTest, ...], str]:
    """What `required_tests` and `required_sha256` give of a policy and a suite.

    Raises:
        PolicyRefused: the policy asks for what the suite does not have, or for other tests.
    """
    if problems := [rule.error() for rule in broken_suite_rules(policy, suite)]:
        raise PolicyRefused(problems)
    required = required_tests(policy, suite)
    return required, required_sha256(required, suite)


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
    named = {test.scenario.id for test in tests.values()}
    named |= {side for claim in claims.values() for side in claim.claim.sides}
    # Where a file lies says nothing of what is in it.
    scenarios = [replace(one, file=None) for one in suite.scenarios if one.id in named]
    said = {
        "tests": sorted(tests),
        "scenarios": sorted(
            (to_plain(scenario) for scenario in scenarios), key=lambda one: str(one["id"])
        ),
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
    known = [*suite.tests, *(scenario.id for scenario in suite.scenarios)]
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
