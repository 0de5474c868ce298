"""Policy: what must be measured, how, and judged as what, before a build is released: release.yaml.

Every error has file, line and field. What the suite must have of it is in `required_tests`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.core.metrics import lookup
from perfgate.core.plain import from_plain
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.scenarios.metric_rules import unknown_metric
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import Document, read_document
from perfgate.scenarios.yaml_limits import LARGEST_FILE

SCHEMA = Path(__file__).with_name("policy.schema.json")
Plain = Mapping[str, Any]
T = TypeVar("T")
SCHEMA_VERSION = 1

Effect = Literal["pass", "warn", "fail"]
"""What something counts as in the result of a release."""
EFFECTS: tuple[Effect, ...] = get_args(Effect)
"""The worst last."""

STRICT_EFFECTS: Mapping[str, Effect] = {
    "INCONCLUSIVE": "fail",
    "NO_BASELINE": "fail",
    "NOT_COMPARABLE": "fail",
    "WAIVED": "fail",
}
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
    def in_words(self) -> str:
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
        required_sha256: what `required_tests` must give; empty: it is not looked at.
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


def load_policy(path: Path, rules: Callable[[Policy], Iterable[Problem]] = lambda _: ()) -> Policy:
    """The policy of a file.

    Args:
        path: the file.
        rules: what is wrong with it beside what its file alone shows, as
            `required_tests.broken_suite_rules` has it of a suite.

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
    errors += _problems(document, errors)
    if errors:
        raise PolicyRefused(errors)
    digest = hashlib.sha256(read_input(path, LARGEST_FILE)).hexdigest()
    policy = from_plain(Policy, {**document.value, "sha256": digest})  # type: ignore[dict-item]
    if found := [document.error(problem) for problem in rules(policy)]:
        raise PolicyRefused(found)
    return policy


def _problems(document: Document, known: Sequence[InputError]) -> list[InputError]:
    """What is wrong with the file's value, but in lines of which something worse is known."""
    schema = read_schema(SCHEMA, described=True, one_line=True)
    problems = schema.problems(document.value)
    if not problems and not known:
        problems = list(broken_policy_rules(document.value))  # type: ignore[arg-type]
    lines = {error.line for error in known}
    found = [document.error(problem) for problem in problems]
    return [error for error in found if error.line not in lines]


def broken_policy_rules(policy: Plain) -> Iterator[Problem]:
    """All that contradicts itself in a policy that its schema takes."""
    groups, aside = policy["required"], policy.get("set_aside", ())
    for number, _ in _repeated(group["name"] for group in groups):
        path = ("required", number, "name")
        expected = "a name of its own for each group"
        yield Problem(path, "two groups of one name", groups[number]["name"], expected)
    for number, group in enumerate(groups):
        yield from _selects_by_something(("required", number), group)
        yield from _floors_are_of_metrics(("required", number, "floors"), group)
    yield from _one_limit_each(groups)
    yield from _one_commit(policy)
    for number, _ in _repeated((one["run"], one["test"]) for one in aside):
        found = f"{aside[number]['test']} of run {aside[number]['run']}"
        yield Problem(("set_aside", number), "set aside twice", found)


def _repeated(keys: Iterable[T]) -> Iterator[tuple[int, int]]:
    """Position of each key that was there before, and where it was first."""
    first: dict[T, int] = {}
    for number, key in enumerate(keys):
        if first.setdefault(key, number) != number:
            yield number, first[key]


def _selects_by_something(path: Keys, group: Plain) -> Iterator[Problem]:
    if "select" not in group and "tests" not in group:
        yield Problem(
            path,
            "selects nothing",
            f"neither select nor tests in {group['name']}",
            "select (an expression of markers), tests (a list of ids), or both",
        )


def _floors_are_of_metrics(path: Keys, group: Plain) -> Iterator[Problem]:
    for number, floor in enumerate(group.get("floors", ())):
        if problem := unknown_metric((*path, number, "metric"), floor["metric"]):
            yield problem
        elif lookup(floor["metric"]).unit == "fraction" and floor["limit"] > 1:
            yield Problem(
                (*path, number, "limit"), "out of range", floor["limit"], "a fraction, at most 1"
            )


def _one_limit_each(groups: Sequence[Plain]) -> Iterator[Problem]:
    floors = [
        (("required", number, "floors", place, "limit"), floor)
        for number, group in enumerate(groups)
        for place, floor in enumerate(group.get("floors", ()))
    ]
    for again, first in _repeated((floor["test"], floor["metric"]) for _, floor in floors):
        path, floor = floors[again]
        yield Problem(
            path,
            "two limits for one metric",
            f"{floor['limit']:g} for {floor['metric']} of {floor['test']}",
            f"one limit; {floors[first][1]['limit']:g} stands before",
            "keep one of the two",
        )


def _one_commit(policy: Plain) -> Iterator[Problem]:
    commit = policy["build"].get("commit")
    for number, subject in enumerate(policy.get("subjects", ())):
        other = subject["digest"].get("gitCommit")
        if commit and other and not other.startswith(commit):
            yield Problem(
                ("subjects", number, "digest", "gitCommit"),
                "not the commit of the build",
                other,
                f"one that begins with {commit}, as build.commit says",
            )
