from itertools import product

import pytest

from perfgate.gate.verdict import Verdict
from perfgate.verdicts.exit_status import ExitStatus, exit_status, meaning

PASS, REGRESSION, IMPROVEMENT, INCONCLUSIVE, NO_BASELINE, NOT_COMPARABLE, ERROR = (
    Verdict.PASS,
    Verdict.REGRESSION,
    Verdict.IMPROVEMENT,
    Verdict.INCONCLUSIVE,
    Verdict.NO_BASELINE,
    Verdict.NOT_COMPARABLE,
    Verdict.ERROR,
)

# One verdict alone: its status without and with --gate.
ALONE: dict[Verdict | None, tuple[int, int]] = {
    PASS: (0, 0),
    IMPROVEMENT: (0, 0),
    REGRESSION: (1, 1),
    INCONCLUSIVE: (10, 10),
    ERROR: (11, 11),
    NO_BASELINE: (0, 12),
    NOT_COMPARABLE: (0, 12),
    None: (0, 12),
}
FROM_WORST = (1, 11, 12, 10, 0)


def test_the_numbers_are_a_promise_to_scripts() -> None:
    assert {status.name: status.value for status in ExitStatus} == {
        "PASSED": 0,
        "REGRESSION": 1,
        "INCONCLUSIVE": 10,
        "ERROR": 11,
        "NOT_JUDGED": 12,
        "REHEARSED": 13,
        "WAIVERS": 14,
    }


def test_none_of_them_is_one_of_pytests_own() -> None:
    pytests = {status.value for status in pytest.ExitCode} - {0, 1}
    assert not pytests & set(ExitStatus)


def test_the_table_has_every_verdict() -> None:
    assert set(ALONE) == {*Verdict, None}


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("verdict", ALONE)
def test_one_verdict_alone(verdict: Verdict | None, gate: bool) -> None:
    assert exit_status([verdict], gate=gate) == ALONE[verdict][gate]


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("verdicts", list(product(ALONE, repeat=2)))
def test_of_several_the_worst_counts(verdicts: tuple[Verdict | None, ...], gate: bool) -> None:
    statuses = {ALONE[verdict][gate] for verdict in verdicts}
    worst = next(status for status in FROM_WORST if status in statuses)
    assert exit_status(iter(verdicts), gate=gate) == worst


def test_a_waiver_that_does_not_hold_fails_a_run_of_passes() -> None:
    def status(*verdicts: Verdict | None, gate: bool = False) -> ExitStatus:
        return exit_status(verdicts, gate=gate, waivers_hold=False)

    assert status(Verdict.PASS) == status(None, gate=True) == ExitStatus.WAIVERS
    assert status(Verdict.INCONCLUSIVE) == ExitStatus.WAIVERS
    assert status(Verdict.REGRESSION) == ExitStatus.REGRESSION
    assert status(Verdict.ERROR) == ExitStatus.ERROR


def test_nothing_selected_is_no_release() -> None:
    assert exit_status([], gate=True) == ExitStatus.NOT_JUDGED


@pytest.mark.parametrize("gate", [False, True])
def test_a_rehearsal_never_ends_in_0(gate: bool) -> None:
    for verdicts in ([Verdict.PASS], [Verdict.IMPROVEMENT, Verdict.PASS], []):
        assert exit_status(verdicts, gate=gate, rehearsed=True) != ExitStatus.PASSED
    assert exit_status([Verdict.PASS], gate=gate, rehearsed=True) == ExitStatus.REHEARSED
    assert exit_status([None, None], gate=gate, rehearsed=True) == ExitStatus.NOT_JUDGED
    assert exit_status([Verdict.REGRESSION], gate=gate, rehearsed=True) == ExitStatus.REGRESSION
    assert exit_status([], gate=False) == ExitStatus.PASSED


def test_every_status_has_its_own_meaning() -> None:
    assert len({meaning(status) for status in ExitStatus}) == len(ExitStatus)


def test_a_status_of_zero_does_not_hide_what_was_not_judged() -> None:
    passed = ExitStatus.PASSED
    assert meaning(passed, [Verdict.PASS]) == "every judged scenario passed"
    assert meaning(passed, [None, Verdict.NO_BASELINE]).startswith("nothing was judged")
    assert "1 of 2 selected tests got no verdict" in meaning(passed, [Verdict.PASS, None])
    assert meaning(ExitStatus.REGRESSION, [None]) == meaning(ExitStatus.REGRESSION)
