"""Check result: what a policy requires beside what the runs hold of it, also as a table. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from perfgate.core.verdict import counted
from perfgate.release.policy import EFFECTS, Effect, Policy
from perfgate.reports.run_report import RunFacts, TestResult

Result = Literal["PASSED", "WARNED", "FAILED"]
"""As in-toto's test-result predicate has it."""
COLUMNS = ("required", "test", "run", "found", "counts as", "metrics", "why")


class Finding(StrEnum):
    """What there is of one required test."""

    PASSED = "passed"
    WAIVED = "waived"
    REGRESSION = "regression"
    BELOW_FLOOR = "below floor"
    BELOW_DOCUMENTED = "below documented"
    INCONCLUSIVE = "inconclusive"
    NO_BASELINE = "no baseline"
    NOT_COMPARABLE = "not comparable"
    ERROR = "error"
    NOT_RUN = "not run"
    MISSING = "missing"
    STALE = "stale"
    SYNTHETIC = "synthetic"
    INJECTED = "injected"
    WRONG_HARDWARE = "wrong hardware"
    WRONG_BUILD = "wrong build"
    FEW_STARTS = "few starts"
    NOTHING_CHECKED = "nothing checked"


LOSSES = (Finding.REGRESSION, Finding.BELOW_FLOOR, Finding.BELOW_DOCUMENTED, Finding.WAIVED)
"""What says that the build is worse than it should be."""
_FINDINGS_FROM_WORST = (*LOSSES[:3], Finding.WRONG_BUILD, Finding.ERROR, Finding.WAIVED)


@dataclass(frozen=True)
class CheckedTest:
    """One required test, and what became of it.

    Attributes:
        requirement: name of the policy's part that requires it.
        test: id of the probe, curve or claim.
        scenario: id of its scenario.
        hardware: label that it must be measured on.
        finding: what there is of it.
        effect: what that counts as.
        why: one sentence for people; empty where it passed.
        run: id of the run that it was found in; empty: in none.
        result: that run's result of it; None: it is in none.
        metrics: gating metrics that have a verdict from numbers.
        waivers: the waivers that let a regression through, as the run's records name them.
    """

    requirement: str
    test: str
    scenario: str
    hardware: str
    finding: Finding
    effect: Effect
    why: str = ""
    run: str = ""
    result: TestResult | None = None
    metrics: int = 0
    waivers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ErrorRates:
    """How often the rule errs over all that was checked, as simulated.

    Attributes:
        false_alarm: probability that a release without any loss shows at least one REGRESSION.
        found: of one loss of its band in one metric, the probability that it is REGRESSION.
        sentence: both, with what they rest on, for people.
    """

    false_alarm: float
    found: float
    sentence: str


@dataclass(frozen=True)
class ReleaseCheck:
    """A policy held against runs.

    Attributes:
        policy: what was asked.
        at: when, UTC.
        runs: those that were read, in the order of their start.
        tests: one for each required test, in the policy's order.
        not_required: ids of tests that the runs hold and no requirement names.
        error_rates: None: no metric was checked.
        result: of the whole, as tests, faults and warnings give it: PASSED only where at least one
            metric was checked and every effect is "pass".
        machines: run → its machine, in words.
        faults: what fails the whole beside its tests, one sentence each.
        warnings: what a person should know who signs, and what keeps it from PASSED, one sentence
            each.
        notes: what was decided between several runs of a test, one sentence each.
        required_sha256: of what is required, as `policy.required_sha256` has it.
    """

    policy: Policy
    at: datetime
    runs: tuple[RunFacts, ...]
    tests: tuple[CheckedTest, ...]
    not_required: tuple[str, ...] = ()
    error_rates: ErrorRates | None = None
    result: Result = field(init=False)
    machines: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    required_sha256: str = ""

    @property
    def metrics_checked(self) -> int:
        """Gating metrics that have a verdict from numbers, over all tests, each test once."""
        return sum({test.test: test.metrics for test in self.tests}.values())

    def __post_init__(self) -> None:
        """Derive the result."""
        result: Result = "WARNED" if self.warnings or self.with_effect("warn") else "PASSED"
        if self.faults or self.with_effect("fail") or not self.metrics_checked:
            result = "FAILED"
        object.__setattr__(self, "result", result)

    def with_effect(self, effect: Effect) -> Sequence[CheckedTest]:
        """The tests that count as `effect`, in the policy's order."""
        return [test for test in self.tests if test.effect == effect]


def check_rows(found: ReleaseCheck) -> list[tuple[str, ...]]:
    """One row a test, as `COLUMNS`; those that passed, one row for each part of the policy."""
    rows = [_row(one) for one in sorted(found.tests, key=severity) if one.effect != "pass"]
    for name in dict.fromkeys(test.requirement for test in found.tests):
        passed = [one for one in found.tests if (one.requirement, one.effect) == (name, "pass")]
        if passed:
            rows.append(_passed(name, passed))
    return rows


def severity(test: CheckedTest) -> tuple[int, int]:
    """What tests are sorted by, the worst first: what fails the release, a loss before the rest."""
    among = _FINDINGS_FROM_WORST
    place = among.index(test.finding) if test.finding in among else len(among)
    return -EFFECTS.index(test.effect), place


def _row(one: CheckedTest) -> tuple[str, ...]:
    metrics = str(one.metrics) if one.metrics else ""
    return (one.requirement, one.test, one.run, one.finding.value, one.effect, metrics, one.why)


def _passed(name: str, passed: Sequence[CheckedTest]) -> tuple[str, ...]:
    runs = ", ".join(dict.fromkeys(one.run for one in passed))
    waived = sum(one.finding != Finding.PASSED for one in passed)
    why = f"{waived} of them waived" if waived else ""
    tests = counted(len(passed), "test")
    metrics = str(sum(one.metrics for one in passed))
    return (name, tests, runs, Finding.PASSED.value, "pass", metrics, why)
