"""Findings: what there is of one required test in the runs, and which run's verdict counts. Pure.

A REGRESSION counts in whichever run it is, whatever later runs say of the same build: running again
until something passes would change the gate's error rates. Else the newest judged verdict counts,
not the best one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from perfgate.core.metrics import lookup
from perfgate.core.verdict import Verdict, counted
from perfgate.release.check_result import CheckedTest, Finding
from perfgate.release.policy import STRICT_EFFECTS, Effect, Policy, SetAside
from perfgate.release.required_tests import RequiredTest, gated_metrics, is_speed
from perfgate.release.run_evidence import RunEvidence, other_build
from perfgate.reports.merge import is_judged
from perfgate.reports.run_report import TestResult

Found = tuple[Finding, str]
"""What there is of a test, and one sentence on it."""

_DECIDED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)


@dataclass(frozen=True)
class _Candidate:
    """A run's result of the test, and why it does not count; an empty `why`: it may."""

    evidence: RunEvidence
    result: TestResult
    finding: Finding | None = None
    why: str = ""


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
    blank = CheckedTest(
        test.required.name,
        test.subject.id,
        test.subject.scenario.id,
        test.hardware,
        Finding.MISSING,
        "fail",
        "no run holds it",
    )
    seen = []
    for one in reversed(runs):
        if result := one.results.get(test.subject.id):
            why_not = next(_flaws(test, one, result, policy, at), ())
            seen.append(_Candidate(one, result, *why_not))
    lost = {one.evidence.id for one in seen if _is_loss(one)}
    aside = [one for one in policy.set_aside if one.test == test.subject.id and one.run in lost]
    candidates = [one for one in seen if one.evidence.id not in {other.run for other in aside}]
    if not candidates:
        if not aside:
            return blank
        return replace(blank, why=f"no other run holds it; {_set_aside(aside)}")
    counts = _counting(candidates, at)
    found, why = counts.finding, counts.why
    if found is None:
        found, why = next(_found(test, counts.result, at))
    if found == Finding.REGRESSION and counts is not candidates[0]:
        later = ", ".join(
            f"run {one.evidence.id}: {one.result.verdict or 'not run'}"
            for one in candidates[: candidates.index(counts)]
        )
        why += f"; running again does not clear it ({later})"
    effect = _effect(found, policy)
    if aside:
        effect = "warn" if effect == "pass" else effect
        why = "; ".join(filter(None, (why, _set_aside(aside))))
    return replace(
        blank,
        finding=found,
        effect=effect,
        why=why,
        run=counts.evidence.id,
        result=counts.result,
        metrics=0 if counts.finding else checked_metrics(counts.result),
        waivers=waivers_of(counts.result),
    )


def choice_note(test: str, runs: Sequence[RunEvidence], checked: CheckedTest) -> str:
    """That a test was judged in several runs, and which of them counts; empty: in one."""
    judged = [one.id for one in runs if test in one.results and is_judged(one.results[test])]
    if len(judged) < 2 or not checked.run:
        return ""
    return f"{test} was judged in {len(judged)} runs ({', '.join(judged)}); {checked.run} counts"


def _is_loss(one: _Candidate) -> bool:
    return one.finding is None and one.result.verdict == Verdict.REGRESSION


def _counting(candidates: Sequence[_Candidate], at: datetime) -> _Candidate:
    """The one that counts, of at least one, the newest first."""
    usable = [one for one in candidates if one.finding is None]
    for place, one in enumerate(usable):
        if _is_loss(one) and not any(_waives(later, one, at) for later in usable[:place]):
            return one
    judged = [one for one in usable if is_judged(one.result)]
    return next(iter([*judged, *usable, *candidates]))


def _waives(later: _Candidate, loss: _Candidate, at: datetime) -> bool:
    """Whether a later run lets the same loss through, by waivers that have not ended."""
    lost = {one.metric for one in loss.result.judgements if one.verdict == Verdict.REGRESSION}
    let = {
        one.metric
        for one in later.result.judgements
        if one.waiver and at.date() <= one.waiver.last_day
    }
    return bool(lost) and lost <= let


def _effect(found: Finding, policy: Policy) -> Effect:
    if found == Finding.PASSED:
        return "pass"
    return policy.effect_of(found.name) if found.name in STRICT_EFFECTS else "fail"


def _set_aside(those: Iterable[SetAside]) -> str:
    return "; ".join(
        f"REGRESSION of run {one.run} set aside by {one.by}: {one.reason} ({one.link})"
        for one in those
    )


def _flaws(
    test: RequiredTest, evidence: RunEvidence, result: TestResult, policy: Policy, at: datetime
) -> Iterator[Found]:
    """Why the result cannot count, the worst reason first; nothing: it can."""
    run, verdict = evidence.id, result.verdict
    if evidence.is_synthetic or result.synthetic:
        yield Finding.SYNTHETIC, f"stand-ins made the numbers of run {run}"
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
    age = at - evidence.started
    if age > timedelta(days=test.max_age_days):
        days = f"{age / timedelta(days=1):.1f} days old, at most {test.max_age_days:g} are allowed"
        yield Finding.STALE, f"run {run} is {days}"
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
        yield Finding.NOT_RUN, ": ".join(filter(None, (result.why_not, result.reason)))
        return
    if result.verdict == Verdict.ERROR:
        failure = result.failure
        yield (
            Finding.ERROR,
            (f"{failure.error_class}: {failure.message}" if failure else result.reason),
        )
    if result.verdict == Verdict.REGRESSION:
        yield Finding.REGRESSION, _reason(result, Verdict.REGRESSION)
    for one in result.judgements:
        if one.waiver and at.date() > one.waiver.last_day:
            ended = f"the waiver of {one.waiver.owner} ended on {one.waiver.last_day}"
            yield Finding.REGRESSION, f"{one.metric}: {one.reason}; {ended}"
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
    told = [f"{one.metric}: {one.reason}" for one in result.judgements if one.verdict == verdict]
    return "; ".join(told) or result.reason or f"the verdict is {verdict.value}"


def _too_low(test: RequiredTest, result: TestResult) -> Iterator[Found]:
    """The numbers that must be reached and are not: the policy's, then the documented ones."""
    for floor in test.floors:
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
        {one.metric for one in result.judgements if one.verdict in _DECIDED and one.runs_used > 0}
    )


def waivers_of(result: TestResult) -> tuple[str, ...]:
    """The waivers that let a regression through, each with its metric."""
    return tuple(f"{one.metric}: {one.waiver}" for one in result.judgements if one.waiver)
