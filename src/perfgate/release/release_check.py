"""Release check: a policy held against runs, and the status that it gives. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from perfgate.baselines.engine_repo import same_hash
from perfgate.core.errors import InputError
from perfgate.core.measured import MeasuredBuild
from perfgate.release.check_result import LOSSES, CheckedTest, ErrorRates, Finding, ReleaseCheck
from perfgate.release.error_rates import error_rates
from perfgate.release.findings import checked_test, choice_note
from perfgate.release.policy import Policy, PolicyRefused
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.required_tests import (
    SuiteTests,
    broken_suite_rules,
    required_sha256,
    required_tests,
)
from perfgate.release.run_evidence import CLOCKS_DIFFER, RunEvidence, evidence_of
from perfgate.reports.merge_checks import require_complete
from perfgate.runs.ended_run import EndedRun


def check(
    policy: Policy,
    runs: Sequence[EndedRun],
    suite: SuiteTests,
    at: datetime,
) -> ReleaseCheck:
    """Hold a policy against runs.

    Args:
        policy: what a release needs.
        runs: at least one, in any order.
        suite: what can be measured.
        at: the time of the check, with a time zone.

    Raises:
        PolicyRefused: the policy asks for what the suite does not have, or for other tests.
        ReleaseRefused: MIXED: the runs are of two builds, or judged by two releases of perfgate;
            CLOCK: a run is of a time after `at`.
        InputError, SeveralInputErrors: a run is named twice or damaged, or a shard is missing.
    """
    if problems := list(broken_suite_rules(policy, suite)):
        raise PolicyRefused([one.error() for one in problems])
    required = required_tests(policy, suite)
    evidence = _evidence(runs, at)
    _require_one_build(evidence, policy)
    tests = tuple(checked_test(one, evidence, policy, at) for one in required)
    names = {one.test for one in tests}
    found = ReleaseCheck(
        policy,
        at.astimezone(UTC),
        tuple(one.facts for one in evidence),
        tests,
        not_required=tuple(
            dict.fromkeys(name for one in evidence for name in one.results if name not in names)
        ),
        machines={one.id: one.machine for one in evidence},
        warnings=tuple(
            f"run {one.id}: {' '.join(fault.split())}"
            for one in evidence
            if not one.is_synthetic
            for fault in one.report.waiver_faults
        ),
        notes=tuple(_notes(evidence, tests)),
        required_sha256=required_sha256(required, suite),
    )
    rates = error_rates(found)
    found = replace(found, error_rates=rates, faults=tuple(_faults(found, rates)))
    return replace(found, result=found.follows)


def status_of(found: ReleaseCheck, *, strict: bool = False) -> ReleaseStatus:
    """What a check tells the shell.

    Args:
        found: the check.
        strict: whether WARNED has a status of its own.
    """
    failing = [one.finding for one in found.with_effect("fail")]
    if any(one in LOSSES for one in failing):
        return ReleaseStatus.FAILED
    if Finding.WRONG_BUILD in failing:
        return ReleaseStatus.MIXED
    if found.result == "FAILED":
        return ReleaseStatus.INCOMPLETE
    if found.result == "WARNED" and strict:
        return ReleaseStatus.WARNED
    return ReleaseStatus.PASSED


def _evidence(runs: Sequence[EndedRun], at: datetime) -> tuple[RunEvidence, ...]:
    """The runs in the order of their start, each looked at by itself."""
    evidence = sorted((evidence_of(one) for one in runs), key=lambda one: (one.started, one.id))
    folders: dict[str, Path] = {}
    for one in evidence:
        if one.id in folders:
            raise InputError(
                "a run is named twice",
                file=one.run.folder,
                field="RUN",
                found=f"run {one.id}, as in {folders[one.id]}",
                expected="each run once",
            )
        folders[one.id] = one.run.folder
        if one.last > at + CLOCKS_DIFFER:
            raise ReleaseRefused(
                ReleaseStatus.CLOCK,
                "a run of a time that is still to come",
                file=one.run.folder,
                found=f"run {one.id}, {one.last.isoformat(timespec='seconds')}",
                expected=f"a time before {at.isoformat(timespec='seconds')}, that of this check",
                hint="set the clock of the machine that measured, and measure again; or of this "
                "one, or give another --at",
            )
    require_complete([one.report for one in evidence], None)
    return tuple(evidence)


def _require_one_build(evidence: Sequence[RunEvidence], policy: Policy) -> None:
    """Refuse runs of two builds, or of two releases of perfgate, which may judge otherwise.

    Raises:
        ReleaseRefused: MIXED, naming both.
    """
    real = [one for one in evidence if not (one.is_synthetic or one.compares_builds)]
    builds = [
        (one.id, result.build)
        for one in real
        for result in one.report.results
        if result.build and result.build.name == policy.build.engine and not result.synthetic
    ]
    for run, build in builds[1:]:
        first_run, first = builds[0]
        if not _is_one(first, build):
            raise _mixed(
                "runs of two builds are no evidence of one release",
                f"run {first_run}: {first.in_words}; run {run}: {build.in_words}",
            )
    for other in real[1:]:
        one, two = (run.facts.versions.get("perfgate") for run in (real[0], other))
        if one != two:
            raise _mixed(
                "runs of two releases of perfgate are judged by different rules",
                f"run {real[0].id}: perfgate {one}; run {other.id}: perfgate {two}",
            )


def _mixed(problem: str, found: str) -> ReleaseRefused:
    return ReleaseRefused(
        ReleaseStatus.MIXED,
        problem,
        field="RUN",
        found=found,
        expected="runs of the one build that the policy names",
        hint="leave the others out; `perfgate compare` compares two builds",
    )


def _is_one(one: MeasuredBuild, other: MeasuredBuild) -> bool:
    digests = {one.digest, other.digest} - {""}
    return one.version == other.version and same_hash(one.commit, other.commit) and len(digests) < 2


def _notes(evidence: Sequence[RunEvidence], tests: Sequence[CheckedTest]) -> Iterator[str]:
    for one in evidence:
        if one.in_words:
            yield one.in_words
        if one.facts.git.get("dirty"):
            yield f"run {one.id} was made with uncommitted changes of the gate repository"
        if one.report.suspicion:
            yield f"run {one.id}: {one.report.suspicion}"
    told = (choice_note(one.test, evidence, one) for one in tests)
    yield from dict.fromkeys(filter(None, told))


def _faults(found: ReleaseCheck, rates: ErrorRates | None) -> Iterator[str]:
    if found.metrics_checked == 0:
        yield "no metric was checked, so nothing is claimed"
    allowed = found.policy.false_alarms
    if rates is not None and rates.false_alarm > allowed:
        yield (
            "the probability of a false alarm over all that was checked is "
            f"{rates.false_alarm:.3g}; the policy allows {allowed:g}"
        )
