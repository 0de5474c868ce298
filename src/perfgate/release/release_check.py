"""Release check: a policy held against runs, and the status that it gives. Pure.

A REGRESSION counts in whichever run it is, whatever later runs say of the same build: running again
until something passes would change the gate's error rates. Else the newest judged verdict counts,
not the best one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perfgate.baselines.engine_repo import same_hash
from perfgate.core.errors import InputError
from perfgate.core.measurement import MeasuredBuild
from perfgate.core.metrics import lookup
from perfgate.core.verdict import Verdict, counted
from perfgate.release.check_result import LOSSES, CheckedTest, Finding, ReleaseCheck
from perfgate.release.error_rates import error_rates
from perfgate.release.policy import (
    STRICT_EFFECTS,
    Effect,
    Policy,
    RequiredTest,
    SuiteTests,
    gated_metrics,
    is_speed,
    requirements,
)
from perfgate.release.release_status import ReleaseStatus
from perfgate.release.run_evidence import CLOCKS_DIFFER, RunEvidence, evidence_of, other_build
from perfgate.reports.merge import is_judged
from perfgate.reports.merge_checks import require_complete
from perfgate.reports.run_report import TestResult
from perfgate.runs.ended_run import EndedRun

Found = tuple[Finding, str]
"""What there is of a test, and one sentence on it."""

_DECIDED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)


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
    required, digest = requirements(policy, suite)
    evidence = _evidence(runs, at)
    _require_one_build(evidence, policy)
    tests = tuple(checked_test(one, evidence, policy, at) for one in required)
    names = {test.test for test in tests}
    others = dict.fromkeys(name for one in evidence for name in one.results if name not in names)
    warnings = [
        f"run {one.id}: {' '.join(fault.split())}"
        for one in evidence
        if not one.is_synthetic
        for fault in one.report.waiver_faults
    ]
    found = ReleaseCheck(
        policy,
        at.astimezone(UTC),
        tuple(one.facts for one in evidence),
        tests,
        not_required=tuple(others),
        error_rates=error_rates(tests),
        machines={one.id: one.machine for one in evidence},
        warnings=tuple(warnings),
        notes=tuple(_notes(evidence, tests)),
        required_sha256=digest,
    )
    return replace(found, faults=tuple(_faults(found)))


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
    evidence = sorted((evidence_of(run) for run in runs), key=lambda one: (one.started, one.id))
    folders: dict[str, Path] = {}
    for one in evidence:
        if one.id in folders:
            raise InputError(
                "a run is named twice",
                file=one.run.folder,
                field="RUN",
                found=f"run {one.id}, as in {folders[one.id]}",
            )
        folders[one.id] = one.run.folder
        if one.last > at + CLOCKS_DIFFER:
            raise ReleaseStatus.CLOCK.refusal(
                "run_to_come",
                file=one.run.folder,
                found=f"run {one.id}, {one.last.isoformat(timespec='seconds')}",
                at=at.isoformat(timespec="seconds"),
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
    other = next((one for one in builds if not _is_one(builds[0][1], one[1])), None)
    if other:
        stated = (f"run {run}: {build.description}" for run, build in (builds[0], other))
        raise ReleaseStatus.MIXED.refusal("two_builds", found="; ".join(stated))
    judges: dict[str | None, str] = {}
    for run in real:
        judges.setdefault(run.facts.versions.get("perfgate"), run.id)
    if len(judges) > 1:
        stated = (f"run {run}: perfgate {judge}" for judge, run in judges.items())
        raise ReleaseStatus.MIXED.refusal("two_judges", found="; ".join(stated))


def _is_one(one: MeasuredBuild, other: MeasuredBuild) -> bool:
    digests = {one.digest, other.digest} - {""}
    return one.version == other.version and same_hash(one.commit, other.commit) and len(digests) < 2


def _notes(evidence: Sequence[RunEvidence], tests: Sequence[CheckedTest]) -> Iterator[str]:
    for one in evidence:
        if one.description:
            yield one.description
        if one.facts.git.get("dirty"):
            yield f"run {one.id} was made with uncommitted changes of the gate repository"
        if one.report.suspicion:
            yield f"run {one.id}: {one.report.suspicion}"
    for name, run in {test.test: test.run for test in tests if test.run}.items():
        found = ((one.id, one.results.get(name)) for one in evidence)
        judged = [each for each, result in found if result and is_judged(result)]
        if len(judged) > 1:
            yield f"{name} was judged in {len(judged)} runs ({', '.join(judged)}); {run} counts"


def _faults(found: ReleaseCheck) -> Iterator[str]:
    if found.metrics_checked == 0:
        yield "no metric was checked, so nothing is claimed"
    rates, allowed = found.error_rates, found.policy.false_alarms
    if rates is not None and rates.false_alarm > allowed:
        yield (
            "the probability of a false alarm over all that was checked is "
            f"{rates.false_alarm:.3g}; the policy allows {allowed:g}"
        )


@dataclass(frozen=True)
class _Candidate:
    """A run's result of the test, and why it does not count; no flaw: it may."""

    run: str
    result: TestResult
    flaw: Found | None

    @property
    def is_loss(self) -> bool:
        """Whether it counts as a REGRESSION."""
        return self.flaw is None and self.result.verdict == Verdict.REGRESSION


def checked_test(
    test: RequiredTest, runs: Sequence[RunEvidence], policy: Policy, at: datetime
) -> CheckedTest:
    """What became of a required test.

    Args:
        test: the test.
        runs: in the order of their start.
        policy: what it is required by.
        at: the time of the check.
    """
    name = test.subject.id
    part = (test.required.name, name, test.subject.scenario.id, test.hardware)
    seen = [
        _Candidate(run.id, result, next(_flaws(test, run, result, policy, at), None))
        for run in reversed(runs)
        if (result := run.results.get(name))
    ]
    lost = {one.run for one in seen if one.is_loss}
    aside = {
        one.run: f"REGRESSION of run {one.run} set aside by {one.by}: {one.reason} ({one.link})"
        for one in policy.set_aside
        if one.test == name and one.run in lost
    }
    candidates = [one for one in seen if one.run not in aside]
    if not candidates:
        missing = "no other run holds it" if aside else "no run holds it"
        return CheckedTest(*part, Finding.MISSING, "fail", "; ".join([missing, *aside.values()]))
    counts = _counting(candidates, at)
    found, why = counts.flaw or next(_found(test, counts.result, at))
    if found == Finding.REGRESSION and counts is not candidates[0]:
        later = ", ".join(
            f"run {candidate.run}: {candidate.result.verdict or 'not run'}"
            for candidate in candidates[: candidates.index(counts)]
        )
        why += f"; running again does not clear it ({later})"
    effect: Effect = "pass" if found == Finding.PASSED else policy.effects.get(found.name, "fail")
    return CheckedTest(
        *part,
        found,
        "warn" if aside and effect == "pass" else effect,
        "; ".join(filter(None, [why, *aside.values()])),
        counts.run,
        counts.result,
        0 if counts.flaw else checked_metrics(counts.result),
        waivers_of(counts.result),
    )


def _counting(candidates: Sequence[_Candidate], at: datetime) -> _Candidate:
    """The one that counts, of at least one, the newest first."""
    usable = [candidate for candidate in candidates if candidate.flaw is None]
    for place, one in enumerate(usable):
        if one.is_loss and not any(_waives(later, one, at) for later in usable[:place]):
            return one
    judged = [one for one in usable if is_judged(one.result)]
    return next(iter([*judged, *usable, *candidates]))


def _waives(later: _Candidate, loss: _Candidate, at: datetime) -> bool:
    """Whether a later run lets the same loss through, by waivers that have not ended."""
    lost = {
        judgement.metric
        for judgement in loss.result.judgements
        if judgement.verdict == Verdict.REGRESSION
    }
    let = {
        one.metric
        for one in later.result.judgements
        if one.waiver and at.date() <= one.waiver.last_day
    }
    return bool(lost) and lost <= let


def _flaws(
    test: RequiredTest, evidence: RunEvidence, result: TestResult, policy: Policy, at: datetime
) -> Iterator[Found]:
    """Why the result cannot count, the worst reason first; nothing: it can."""
    run, verdict = evidence.id, result.verdict
    if evidence.is_synthetic or result.synthetic:
        yield Finding.SYNTHETIC, f"mock programs made the numbers of run {run}"
    if changed := evidence.injected or ", ".join(result.injected):
        yield Finding.INJECTED, f"run {run} changed settings on purpose: {changed}"
    if evidence.compares_builds:
        yield Finding.MISSING, f"run {run} compares two builds (--ab), not one with its baseline"
    if verdict is None:
        return  # nothing was measured, of no build and nowhere
    is_known = result.build is not None or verdict != Verdict.ERROR
    if is_known and (why := other_build(result.build, policy.build)):
        yield Finding.WRONG_BUILD, f"run {run}: {why}"
    yield from _elsewhere(test, evidence)
    if verdict == Verdict.REGRESSION:
        return  # a loss that was shown stays one, whatever ended afterwards and however old
    most = policy.max_age_days if test.required.max_age_days is None else test.required.max_age_days
    age = (at - evidence.started) / timedelta(days=1)
    if age > most:
        yield Finding.STALE, f"run {run} is {age:.1f} days old, at most {most:g} are allowed"
    if evidence.void:
        yield Finding.ERROR, evidence.void


def _elsewhere(test: RequiredTest, evidence: RunEvidence) -> Iterator[Found]:
    """That other hardware was measured, or another workload."""
    if other := evidence.other_hardware(test.subject, test.hardware):
        yield Finding.WRONG_HARDWARE, f"run {evidence.id} measured on {other}, not {test.hardware}"
    if evidence.has_other_content(test.subject):
        changed = f"{test.subject.scenario.id} as it is not written now"
        yield Finding.MISSING, f"run {evidence.id} measured {changed}"


def _found(test: RequiredTest, result: TestResult, at: datetime) -> Iterator[Found]:
    """What a result that counts says; the first is what there is of the test."""
    if result.verdict is None:
        yield Finding.NOT_RUN, ": ".join(filter(None, (result.skip_reason, result.reason)))
        return
    if result.verdict == Verdict.ERROR:
        failure = result.failure
        why = f"{failure.error_class}: {failure.message}" if failure else result.reason
        yield Finding.ERROR, why
    if result.verdict == Verdict.REGRESSION:
        yield Finding.REGRESSION, _reason(result, Verdict.REGRESSION)
    for judgement in result.judgements:
        if judgement.waiver and at.date() > judgement.waiver.last_day:
            ended = f"the waiver of {judgement.waiver.owner} ended on {judgement.waiver.last_day}"
            yield Finding.REGRESSION, f"{judgement.metric}: {judgement.reason}; {ended}"
    yield from _too_low(test, result)
    if is_speed(test.subject) and result.starts < test.required.starts:
        starts = counted(result.starts, "fresh start")
        yield Finding.FEW_STARTS, f"{starts}, at least {test.required.starts} are required"
    if result.verdict.name in STRICT_EFFECTS:
        yield Finding[result.verdict.name], _reason(result, result.verdict)
    if checked_metrics(result) == 0 and (gated_metrics(test.subject) or result.judgements):
        yield Finding.NOTHING_CHECKED, "no metric of it was judged from numbers"
    if waivers := waivers_of(result):
        yield Finding.WAIVED, "; ".join(waivers)
    yield Finding.PASSED, ""


def _reason(result: TestResult, verdict: Verdict) -> str:
    reasons = [
        f"{judgement.metric}: {judgement.reason}"
        for judgement in result.judgements
        if judgement.verdict == verdict
    ]
    return "; ".join(reasons) or result.reason or f"the verdict is {verdict.value}"


def _too_low(test: RequiredTest, result: TestResult) -> Iterator[Found]:
    """The numbers that must be reached and are not: the policy's, then the documented ones."""
    for floor in test.required.floors:
        if floor.test != test.subject.id:
            continue
        if why := _missed(result, floor.metric, floor.limit, "the policy's floor"):
            yield Finding.BELOW_FLOOR, why
    for one in result.documented if test.required.documented else ():
        if why := _missed(result, one.metric, one.value, f"documented ({one.source})"):
            yield Finding.BELOW_DOCUMENTED, why


def _missed(result: TestResult, metric: str, limit: float, what: str) -> str:
    """How the measured value misses a limit; empty: it reaches it."""
    table = lookup(metric)
    least = table.direction == "higher"
    asked = f"{'at least' if least else 'at most'} {limit:.6g} {table.unit} is {what}"
    found = next((one.value for one in result.measured if one.metric == metric), None)
    if found is None:
        return f"{metric} was not measured; {asked}"
    if found >= limit if least else found <= limit:
        return ""
    return f"{metric} is {found:.6g} {table.unit}; {asked}"


def checked_metrics(result: TestResult) -> int:
    """Gating metrics with a verdict that numbers decided."""
    return len(
        {
            judgement.metric
            for judgement in result.judgements
            if judgement.verdict in _DECIDED and judgement.runs_used > 0
        }
    )


def waivers_of(result: TestResult) -> tuple[str, ...]:
    """The waivers that let a regression through, each with its metric."""
    return tuple(
        f"{judgement.metric}: {judgement.waiver}"
        for judgement in result.judgements
        if judgement.waiver
    )
