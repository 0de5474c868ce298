"""Findings: what there is of one required test in the runs, and which run's verdict counts. Pure.

A REGRESSION counts in whichever run it is, whatever later runs say of the same build: running again
until something passes would change the gate's error rates. Else the newest judged verdict counts,
not the best one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from perfgate.core.metrics import lookup
from perfgate.core.verdict import Verdict, counted
from perfgate.release.check_result import CheckedTest, Finding
from perfgate.release.policy import Effect, Policy, SetAside
from perfgate.release.required_tests import RequiredTest, is_speed
from perfgate.release.run_evidence import RunEvidence, other_build
from perfgate.reports.merge import is_judged
from perfgate.reports.run_report import TestResult

Found = tuple[Finding, str]
"""What there is of a test, and one sentence on it."""

UNDECIDED = {
    Verdict.INCONCLUSIVE: Finding.INCONCLUSIVE,
    Verdict.NO_BASELINE: Finding.NO_BASELINE,
    Verdict.NOT_COMPARABLE: Finding.NOT_COMPARABLE,
}
_DECIDED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
_NAMED = {finding: verdict.value for verdict, finding in UNDECIDED.items()}
_NAMED[Finding.WAIVED] = "WAIVED"


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
    seen = [
        _candidate(test, one, one.results[test.subject.id], policy, at)
        for one in reversed(runs)
        if test.subject.id in one.results
    ]
    aside = {
        one.run: one
        for one in policy.set_aside
        if one.test == test.subject.id
        and any(c.evidence.id == one.run and _is_loss(c) for c in seen)
    }
    candidates = [one for one in seen if one.evidence.id not in aside]
    if not candidates:
        if not aside:
            return blank
        return replace(blank, why=f"no other run holds it; {_set_aside(aside.values())}")
    counts = _counting(candidates, at)
    found, why = counts.finding, counts.why
    if found is None:
        found, why = found_of(test, counts.result, at)
    if found == Finding.REGRESSION and counts is not candidates[0]:
        why += f"; running again does not clear it ({_later(candidates, counts)})"
    effect = _effect(found, policy)
    if aside:
        effect = "warn" if effect == "pass" else effect
        why = "; ".join(filter(None, (why, _set_aside(aside.values()))))
    return replace(
        blank,
        finding=found,
        effect=effect,
        why=why,
        run=counts.evidence.id,
        result=counts.result,
        metrics=0 if counts.finding else checked_metrics(counts.result),
        waivers=tuple(waivers_of(counts.result)),
    )


def choice_note(test: str, runs: Sequence[RunEvidence], checked: CheckedTest) -> str:
    """That a test was judged in several runs, and which of them counts; empty: in one."""
    judged = [one.id for one in runs if test in one.results and is_judged(one.results[test])]
    if len(judged) < 2 or not checked.run:
        return ""
    return f"{test} was judged in {len(judged)} runs ({', '.join(judged)}); {checked.run} counts"


def _candidate(
    test: RequiredTest, evidence: RunEvidence, result: TestResult, policy: Policy, at: datetime
) -> _Candidate:
    found = unusable(test, evidence, result, policy, at)
    return _Candidate(evidence, result, *(found or ()))


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
    return policy.effect_of(_NAMED[found]) if found in _NAMED else "fail"


def _set_aside(those: Iterable[SetAside]) -> str:
    return "; ".join(
        f"REGRESSION of run {one.run} set aside by {one.by}: {one.reason} ({one.link})"
        for one in those
    )


def _later(candidates: Sequence[_Candidate], counts: _Candidate) -> str:
    later = candidates[: candidates.index(counts)]
    return ", ".join(
        f"run {one.evidence.id}: {one.result.verdict.value if one.result.verdict else 'not run'}"
        for one in later
    )


def unusable(
    test: RequiredTest, evidence: RunEvidence, result: TestResult, policy: Policy, at: datetime
) -> Found | None:
    """Why the result cannot count; None: it can."""
    run = evidence.id
    if evidence.is_synthetic or result.synthetic:
        return Finding.SYNTHETIC, f"stand-ins made the numbers of run {run}"
    if evidence.injected or result.injected:
        changed = evidence.injected or ", ".join(result.injected)
        return Finding.INJECTED, f"run {run} changed settings on purpose: {changed}"
    if evidence.compares_builds:
        return Finding.MISSING, f"run {run} compares two builds (--ab), not one with its baseline"
    if result.verdict is None:
        return None  # nothing was measured, of no build and nowhere
    return _elsewhere(test, evidence, result, policy) or _not_now(test, evidence, result, at)


def _elsewhere(
    test: RequiredTest, evidence: RunEvidence, result: TestResult, policy: Policy
) -> Found | None:
    """That something else was measured: another build, hardware or workload."""
    run, is_known = evidence.id, result.build is not None or result.verdict != Verdict.ERROR
    if is_known and (why := other_build(result.build, policy.build)):
        return Finding.WRONG_BUILD, f"run {run}: {why}"
    if other := evidence.other_hardware(test.subject, test.hardware):
        return Finding.WRONG_HARDWARE, f"run {run} measured on {other}, not {test.hardware}"
    if evidence.has_other_content(test.subject):
        changed = f"{test.subject.scenario.id} as it is not written now"
        return Finding.MISSING, f"run {run} measured {changed}"
    return None


def _not_now(
    test: RequiredTest, evidence: RunEvidence, result: TestResult, at: datetime
) -> Found | None:
    """That the run is too old, or did not come to its end."""
    if result.verdict == Verdict.REGRESSION:
        return None  # a loss that was shown stays one, whatever ended afterwards and however old
    age = at - evidence.started
    if age > timedelta(days=test.max_age_days):
        told = f"{age / timedelta(days=1):.1f} days old, at most {test.max_age_days:g} are allowed"
        return Finding.STALE, f"run {evidence.id} is {told}"
    return (Finding.ERROR, evidence.void) if evidence.void else None


def found_of(test: RequiredTest, result: TestResult, at: datetime) -> Found:
    """What a result that counts says."""
    if result.verdict is None:
        return Finding.NOT_RUN, ": ".join(filter(None, (result.why_not, result.reason)))
    if result.verdict == Verdict.ERROR:
        failure = result.failure
        told = f"{failure.error_class}: {failure.message}" if failure else result.reason
        return Finding.ERROR, told
    if result.verdict == Verdict.REGRESSION:
        return Finding.REGRESSION, _reason(result, Verdict.REGRESSION)
    found = (
        _ended_waiver(result, at.date())
        or _below_floor(test, result)
        or _below_documented(test, result)
        or _few_starts(test, result)
    )
    if found is not None:
        return found
    if result.verdict in UNDECIDED:
        return UNDECIDED[result.verdict], _reason(result, result.verdict)
    # A first answer has no metric, and passes by being right.
    if checked_metrics(result) == 0 and (_gates(test) or result.judgements):
        return Finding.NOTHING_CHECKED, "no metric of it was judged from numbers"
    waivers = list(waivers_of(result))
    if waivers:
        return Finding.WAIVED, "; ".join(waivers)
    return Finding.PASSED, ""


def _gates(test: RequiredTest) -> bool:
    metrics = getattr(test.subject, "gating_metrics", None)
    return True if metrics is None else bool(metrics())


def _reason(result: TestResult, verdict: Verdict) -> str:
    told = [f"{one.metric}: {one.reason}" for one in result.judgements if one.verdict == verdict]
    return "; ".join(told) or result.reason or f"the verdict is {verdict.value}"


def _ended_waiver(result: TestResult, today: date) -> Found | None:
    for one in result.judgements:
        if one.waiver and today > one.waiver.last_day:
            ended = f"the waiver of {one.waiver.owner} ended on {one.waiver.last_day}"
            return Finding.REGRESSION, f"{one.metric}: {one.reason}; {ended}"
    return None


def _below_floor(test: RequiredTest, result: TestResult) -> Found | None:
    for floor in test.floors:
        if why := _missed(result, floor.metric, floor.limit, "the policy's floor"):
            return Finding.BELOW_FLOOR, why
    return None


def _below_documented(test: RequiredTest, result: TestResult) -> Found | None:
    if not test.required.documented:
        return None
    for one in result.documented:
        if why := _missed(result, one.metric, one.value, f"documented ({one.source})"):
            return Finding.BELOW_DOCUMENTED, why
    return None


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


def _few_starts(test: RequiredTest, result: TestResult) -> Found | None:
    if not is_speed(test.subject) or result.starts >= test.required.starts:
        return None
    told = counted(result.starts, "fresh start")
    return Finding.FEW_STARTS, f"{told}, at least {test.required.starts} are required"


def checked_metrics(result: TestResult) -> int:
    """Gating metrics with a verdict that numbers decided."""
    return len(
        {one.metric for one in result.judgements if one.verdict in _DECIDED and one.runs_used > 0}
    )


def waivers_of(result: TestResult) -> Iterator[str]:
    """The waivers that let a regression through, each with its metric."""
    for one in result.judgements:
        if one.waiver:
            yield f"{one.metric}: {one.waiver}"
