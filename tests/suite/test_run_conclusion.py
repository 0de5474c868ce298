"""RunConclusion: exit status of a run from its records, waivers that do not hold included."""

import datetime
from typing import Any

import building

from perfgate.baselines.waivers import Waiver
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
    found: list[dict[str, Any]], *waivers: Waiver, failed: tuple[str, ...] = ()
) -> RunConclusion:
    return conclude(
        found,
        failed,
        scenarios=[building.SCENARIO],
        waivers=waivers,
        today=TODAY,
        gate=False,
        rehearsed=False,
    )


def test_the_verdicts_give_the_status() -> None:
    assert end(records(building.outcome())).status == ExitStatus.REGRESSION
    assert end([{"record": "selected", "tests": ["t"]}]).status == ExitStatus.PASSED


def test_a_test_that_failed_without_a_verdict_is_an_error() -> None:
    crashed = [{"record": "selected", "tests": ["t"]}]
    assert end(crashed, failed=("t", "another")).status == ExitStatus.ERROR


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
