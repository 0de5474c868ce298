"""Findings: what there is of one required test in the runs, and which run's verdict counts. Pure.

A REGRESSION counts in whichever run it is, whatever later runs say of the same build: running again
until something passes would change the gate's error rates. Else the newest judged verdict counts,
not the best one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perfgate.core.verdict import Verdict
from perfgate.release.check_result import CheckedTest, Finding
from perfgate.release.policy import Effect, Policy, SetAside
from perfgate.release.requirements import RequiredTest
from perfgate.release.result_rules import (
    UNDECIDED,
    checked_metrics,
    found_of,
    unusable,
    waivers_of,
)
from perfgate.release.run_evidence import RunEvidence
from perfgate.reports.merge import is_judged
from perfgate.reports.run_report import TestResult

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
