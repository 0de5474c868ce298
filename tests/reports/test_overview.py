"""What a reader acts on first: order, groups and counts."""

from run_reports import judged, report, result

from perfgate.gate.verdict import Verdict
from perfgate.reports.overview import (
    allowed,
    builds,
    counts,
    errors,
    findings,
    not_run,
    unjudged,
)


def test_the_largest_loss_in_bands_is_first_whichever_way_is_worse() -> None:
    made = (
        judged(Verdict.REGRESSION, -0.06),
        judged(Verdict.REGRESSION, 0.2, metric="tpot_mean_ms"),
        judged(Verdict.REGRESSION, -0.05, band=0.001),
    )
    found = findings(report(result(0, Verdict.REGRESSION, judgements=made)), Verdict.REGRESSION)
    assert [round(one.bands, 6) for one in found] == [50.0, 10.0, 3.0]


def test_a_metric_that_the_table_lacks_has_no_direction() -> None:
    strange = judged(Verdict.REGRESSION, metric="unheard of")
    (found,) = findings(
        report(result(0, Verdict.REGRESSION, judgements=(strange,))), Verdict.REGRESSION
    )
    assert found.bands == 0
    assert allowed(strange) == "-"


def test_waived_losses_are_left_out() -> None:
    waived = judged(Verdict.REGRESSION, waiver="Ada")
    proved = judged(Verdict.REGRESSION, -0.1)
    one = result(0, Verdict.REGRESSION, judgements=(waived, proved))
    assert [found.judgement for found in findings(report(one), Verdict.REGRESSION)] == [proved]


def test_a_verdict_without_numbers_is_there_with_its_test() -> None:
    one = result(0, Verdict.REGRESSION, judgements=(), reason="A is not faster")
    (found,) = findings(report(one), Verdict.REGRESSION)
    assert (found.result, found.judgement) == (one, None)


def test_tests_with_the_same_reason_are_together_the_most_first() -> None:
    of = report(
        result(0, Verdict.ERROR),
        result(1, None, why_not="budget", reason="no time"),
        result(2, None),
        result(3, None),
        result(4, Verdict.NO_BASELINE, reason="none yet"),
    )
    assert [(one.what, one.reason) for one in errors(of)] == [
        ("oom", "the server ran out of GPU memory")
    ]
    assert [(one.what, len(one.names)) for one in not_run(of)] == [
        ("not run", 2),
        ("not run for lack of time", 1),
    ]
    assert [one.what for one in unjudged(of)] == ["NO_BASELINE"]


def test_every_test_is_counted_once_the_worst_first() -> None:
    of = report(
        *(result(place, verdict) for place, verdict in enumerate([*Verdict, None])),
        result(8, None, why_not="unfinished"),
    )
    found = counts(of)
    assert [*found] == [
        *("REGRESSION", "ERROR", "INCONCLUSIVE", "NOT_COMPARABLE", "NO_BASELINE"),
        *("IMPROVEMENT", "PASS", "not run", "not finished"),
    ]
    assert sum(found.values()) == len(of.results)


def test_equal_builds_are_told_once() -> None:
    assert len(builds(report(result(0), result(1), result(2, None)))) == 1
