"""A release check for people: readable with 500 tests, whatever their texts hold."""

from dataclasses import replace

import run_reports
from releases import AT, POLICY

from perfgate.core.verdict import Verdict
from perfgate.release.check_result import (
    CheckedTest,
    ErrorRates,
    Finding,
    ReleaseCheck,
    check_lines,
    check_rows,
)
from perfgate.release.policy import Effect, Required

_FINDINGS: dict[Verdict | None, tuple[Finding, Effect]] = {
    Verdict.PASS: (Finding.PASSED, "pass"),
    Verdict.IMPROVEMENT: (Finding.PASSED, "pass"),
    Verdict.REGRESSION: (Finding.REGRESSION, "fail"),
    Verdict.INCONCLUSIVE: (Finding.INCONCLUSIVE, "warn"),
    Verdict.ERROR: (Finding.ERROR, "fail"),
    Verdict.NO_BASELINE: (Finding.NO_BASELINE, "fail"),
    Verdict.NOT_COMPARABLE: (Finding.NOT_COMPARABLE, "warn"),
    None: (Finding.NOT_RUN, "fail"),
}


def release(number: int) -> ReleaseCheck:
    """A check of so many tests in two groups."""
    report = run_reports.of_size(number)
    tests = tuple(
        CheckedTest(
            "night" if place % 2 else "week",
            one.name,
            one.scenario,
            "8xB200",
            *_FINDINGS[one.verdict],
            why="as told",
            run=one.run,
            result=one,
            metrics=2,
        )
        for place, one in enumerate(report.results)
    )
    policy = replace(POLICY, required=(Required("night"), Required("week")))
    return ReleaseCheck(policy, AT, report.runs, tests)


def test_500_tests_are_as_many_rows_as_did_not_pass_and_two() -> None:
    found = release(500)
    rows = check_rows(found)
    passed = len(found.with_effect("pass"))
    assert len(rows) == 500 - passed + 2
    assert [row[3] for row in rows[:25]] == ["regression"] * 25
    effects = [row[4] for row in rows]
    assert effects == sorted(effects, key=["fail", "warn", "pass"].index)
    assert [row[0] for row in rows[-2:]] == ["week", "night"]
    assert sum(int(row[1].split()[0]) for row in rows[-2:]) == passed


def test_what_was_checked_is_told_with_its_error_rates() -> None:
    rates = ErrorRates(0.02, 0.9, "false alarm 2.0 %, as simulated")
    found = replace(
        release(4),
        error_rates=rates,
        faults=("too likely",),
        warnings=("a waiver",),
        notes=("a rehearsal",),
        result="WARNED",
    )
    lines = check_lines(found)
    assert "release: small 1.3.0 (llama.cpp 1.3.0)" in lines
    assert "error rates: false alarm 2.0 %, as simulated" in lines
    assert {"fails: too likely", "warning: a waiver", "note: a rehearsal"} <= set(lines)
    assert lines[-1] == "result: WARNED"
    assert "metrics: 8 checked from numbers" in lines
