"""RunConclusion: exit status of a run from its records, waivers that do not hold included."""

import datetime
from typing import Any

import building
import pytest

from perfgate.baselines.waivers import Waiver
from perfgate.gate.verdict import Verdict
from perfgate.suite.run_conclusion import RunConclusion, conclude
from perfgate.verdicts.exit_status import ExitStatus
from perfgate.verdicts.outcome import Outcome

TODAY = datetime.date(2026, 11, 21)


def records(*outcomes: Outcome) -> list[dict[str, Any]]:
    tests = [f"t{number}" for number, _ in enumerate(outcomes)]
    return [
        {"record": "selected", "tests": tests},
        *(
            {"record": "verdict", "test": test, **one.as_record()}
            for test, one in zip(tests, outcomes, strict=True)
        ),
    ]


def end(
    found: list[dict[str, Any]],
    *waivers: Waiver,
    failed: tuple[str, ...] = (),
    bug: bool = False,
    record: bool = False,
) -> RunConclusion:
    return conclude(
        found,
        failed,
        failed if bug else (),
        scenarios=[building.SCENARIO],
        waivers=waivers,
        today=TODAY,
        gate=False,
        record=record,
        rehearsed=False,
    )


def test_the_verdicts_give_the_status() -> None:
    assert end(records(building.outcome())).status == ExitStatus.REGRESSION
    assert end(records(building.outcome(verdict=Verdict.PASS))).status == ExitStatus.PASSED
    assert end([{"record": "selected", "tests": ["t"]}]).status == ExitStatus.NOT_JUDGED


def test_a_test_that_failed_without_a_verdict_is_an_error() -> None:
    crashed = [{"record": "selected", "tests": ["t"]}]
    assert end(crashed, failed=("t",)).status == ExitStatus.ERROR


@pytest.mark.parametrize("failed", ["t0", "test_mine.py::test_mine"])
def test_a_failure_that_no_verdict_explains_is_an_error(failed: str) -> None:
    passed = records(building.outcome(verdict=Verdict.PASS))
    assert end(passed, failed=(failed,)).status == ExitStatus.ERROR


def test_a_bug_of_perfgate_outweighs_all_but_a_regression() -> None:
    def status(verdict: Verdict) -> ExitStatus:
        return end(records(building.outcome(verdict=verdict)), failed=("t0",), bug=True).status

    assert status(Verdict.PASS) == status(Verdict.INCONCLUSIVE) == ExitStatus.INTERNAL_ERROR
    assert status(Verdict.REGRESSION) == ExitStatus.REGRESSION


def test_a_run_that_records_needs_a_measurement_alone() -> None:
    unjudged = records(building.outcome(verdict=Verdict.NO_BASELINE))
    assert end(unjudged).status == ExitStatus.NOT_JUDGED
    assert end(unjudged, record=True).status == ExitStatus.PASSED
    assert end([{"record": "selected", "tests": ["t"]}], record=True).status == 12


def test_a_waiver_for_what_the_suite_does_not_know_fails_the_run() -> None:
    waiver = Waiver(
        "no-such-scenario",
        "output_throughput",
        "cpu",
        0.05,
        "known",
        "https://example.org/1",
        "Ada",
        TODAY,
        line=4,
    )
    found = end([{"record": "selected", "tests": ["t"]}], waiver)
    assert found.status == ExitStatus.WAIVERS
    assert [fault.kind for fault in found.faults] == ["unmatched"]
