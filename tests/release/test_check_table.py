"""A release check for people: readable with 500 tests, whatever their texts hold."""

from dataclasses import replace

from made_checks import check, checked

from perfgate.release.check_result import ErrorRates, Finding, check_lines, check_rows

FINDINGS = [
    *(Finding.PASSED, Finding.MISSING, Finding.PASSED, Finding.WAIVED, Finding.PASSED),
    *(Finding.PASSED, Finding.ERROR, Finding.PASSED, Finding.REGRESSION, Finding.INCONCLUSIVE),
]


def test_500_tests_are_as_many_rows_as_did_not_pass_and_two() -> None:
    parts = ("week", "night")
    tests = [checked(n, FINDINGS[n % 10], requirement=parts[n // 10 % 2]) for n in range(500)]
    rows = check_rows(check(*tests))
    assert [row[3] for row in rows] == [
        *["regression"] * 50,
        *["error"] * 50,
        *["missing", "inconclusive"] * 50,
        *["waived"] * 50,
        *["passed"] * 2,
    ]
    effects = [row[4] for row in rows]
    assert effects == sorted(effects, key=["fail", "warn", "pass"].index)
    assert [(row[0], row[1]) for row in rows[-2:]] == [
        ("week", "125 tests"),
        ("night", "125 tests"),
    ]


def test_what_was_checked_is_told_with_its_error_rates() -> None:
    found = replace(
        check(checked(0), checked(1)),
        error_rates=ErrorRates(0.02, 0.9, "false alarm 2.0 %, as simulated"),
        faults=("too likely",),
        warnings=("a waiver",),
        notes=("a rehearsal",),
        result="WARNED",
    )
    lines = check_lines(found)
    assert lines[0].startswith("release: tensorrt-llm 1.3.0 for B200 (tensorrt-llm 1.3.0, commit ")
    assert "error rates: false alarm 2.0 %, as simulated" in lines
    assert {"fails: too likely", "warning: a waiver", "note: a rehearsal"} <= set(lines)
    assert lines[-1] == "result: WARNED"
    assert "metrics: 4 checked from numbers" in lines
