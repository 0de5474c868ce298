"""How many starts a campaign may make, of which role, and for how long."""

import pytest

from perfgate.campaign.budget import Budget, StartAllowance
from perfgate.campaign.schedule import StartRole
from perfgate.runs.start_counts import Account


def allowance(budget_s: float | None = None, budget: Budget | None = None) -> StartAllowance:
    return StartAllowance(budget_s, budget, Account())


def made(of: StartAllowance, role: StartRole, *, disturbed: bool = False) -> int:
    number = of.begin(role)
    of.ended(role, 10.0, disturbed=disturbed)
    return number


def test_each_role_has_a_limit_of_its_own() -> None:
    one = allowance()
    for _ in range(3):
        assert one.allows("baseline_control", 2)
        made(one, "baseline_control")
    assert not one.allows("baseline_control", 5), "three controls of each build"
    assert one.allows("anchor_control", 2)
    assert one.allows("new", 1)
    made(one, "new")
    assert not one.allows("new", 1)


@pytest.mark.parametrize("role", ["new", "baseline_control"])
def test_two_disturbed_starts_do_not_count(role: StartRole) -> None:
    one = allowance()
    for _ in range(2):
        made(one, role, disturbed=True)
    for _ in range(3):
        assert one.allows(role, 3)
        made(one, role, disturbed=True)
    assert not one.allows(role, 3)


def test_a_reference_is_repeated_twice() -> None:
    one = allowance()
    repeated = []
    for _ in range(3):
        made(one, "reference", disturbed=True)
        repeated.append(one.repeats("reference"))
    assert repeated == [True, True, False]


@pytest.mark.parametrize(
    ("role", "ends"), [("new", True), ("baseline_control", True), ("reference", False)]
)
def test_the_scenarios_time_counts_both_builds_and_no_reference(
    role: StartRole, ends: bool
) -> None:
    one = allowance(budget_s=5.0)
    made(one, role)
    assert one.out_of_time is ends
    assert one.allows("new", 5) is not ends
    told = list(one.why_no_more(undecided=True, is_open=True))
    assert told == (["no more starts: 10 s used of gate.budget_s 5"] if ends else [])
