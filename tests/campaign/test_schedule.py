"""The order of a campaign's starts, how many it may make, and how they are counted."""

import building
from tables import each

from perfgate.campaign.schedule import (
    AB,
    AB_BLOCKS,
    BLOCKS,
    CLAIMS,
    LoopState,
    Schedule,
    Start,
    StartRequest,
    StartRole,
    Starts,
    around_own_reference,
    next_start,
    taking_turns,
    totals,
)
from perfgate.runs.record import GroupSeconds, GroupStarts
from perfgate.scenarios.probe import all_probes, load_probes

LETTERS: dict[str, StartRole] = {
    "R": "reference",
    "N": "new",
    "C": "baseline_control",
    "O": "anchor_control",
    "A": "a",
    "B": "b",
    "T": "claim",
}
OWN = around_own_reference(3)
(PROBE,) = load_probes(building.SCENARIO)[:1]


def roles(letters: str) -> tuple[StartRole, ...]:
    return tuple(LETTERS[one] for one in letters)


@each(
    "schedule, judged, due, open_for, allowed, comes, then",
    [
        # The opening, and what is left of a round, is made before anything is judged.
        (Schedule(), 0, "N", "N", "N", "N", ""),
        (OWN, 0, "RNRR", "RN", "RN", "R", "NRR"),
        (OWN, 0, "NRR", "RN", "", "N", "RR"),  # a round that was begun is made whole
        (OWN, 0, "NRR", "R", "RN", "R", "R"),  # what nobody needs is left out
        # After a judgement: controls of each build that is wanted, before the build under test.
        (Schedule(), 1, "", "", "N", "", ""),  # all is decided
        (Schedule(), 1, "", "N", "C", "", ""),  # no start is left, or no time
        (Schedule(), 1, "", "C", "NC", "C", ""),
        (Schedule(), 1, "", "NOC", "NCO", "C", "O"),
        (Schedule(), 1, "", "NOC", "NO", "O", ""),  # the baseline's build cannot be started
        (Schedule(), 2, "", "N", "NC", "N", ""),
        (taking_turns(6, 6), 1, "", "N", "N", "N", "N"),
        # Pairs of an A/B, in turns, six at most.
        (AB, 0, "AB", "AB", "AB", "A", "B"),
        (AB, 1, "", "AB", "AB", "B", "A"),
        (AB, 2, "", "AB", "AB", "A", "B"),
        (AB, 2, "", "AB", "", "", ""),  # no time
        (AB, 6, "", "AB", "AB", "", ""),
        # Starts for claims are asked for by these.
        (CLAIMS, 0, "", "T", "T", "", ""),
    ],
)
def test_what_is_started_next(schedule, judged, due, open_for, allowed, comes, then) -> None:
    serves = {role: (PROBE,) for role in roles(open_for)}
    state = LoopState(schedule, roles(due), serves, frozenset(roles(allowed)), judged)
    found = next_start(state)
    assert ("" if found is None else found.role) == "".join(roles(comes))
    assert (() if found is None else found.then) == roles(then)
    assert found is None or found.probes == (PROBE,)


EVERY, LOADS = all_probes(building.SCENARIO), load_probes(building.SCENARIO)


@each(
    "schedule, probes, beside",
    [
        (BLOCKS, EVERY, StartRequest("reference", LOADS)),  # whose answers nobody compares
        (BLOCKS, EVERY[2:], None),
        (AB_BLOCKS, EVERY, StartRequest("a", EVERY)),
        (AB_BLOCKS, EVERY[2:], StartRequest("a", EVERY[2:])),
        (AB, EVERY, None),
    ],
)
def test_what_is_up_at_the_same_time(schedule, probes, beside) -> None:
    role = schedule.opening[0]
    found = next_start(LoopState(schedule, (role,), {role: probes}))
    assert found == StartRequest(role, probes, (), beside)


@each(
    "references, most, opening, then",
    [
        (6, 6, "RRNNRRNNRR", "NN"),
        (4, 4, "RNNRRNNR", "NN"),
        (5, 5, "RRNNRNNRR", "N"),
        (1, 1, "RN", "NN"),
    ],
)
def test_references_take_turns_with_the_build_under_test(references, most, opening, then) -> None:
    schedule = taking_turns(references, most)
    assert schedule.opening == roles(opening)
    assert most < 4 or opening == opening[::-1], "a drift of the machine cancels out"
    assert schedule.further == (roles(then),)
    assert around_own_reference(3).opening == roles("RNRR")


# How many. ----------------------------------------------------------------------------------------


def made(of: Starts, role: StartRole, *, disturbed: bool = False) -> Start:
    start = of.begin(role)
    start.began, start.spent_s, start.disturbed = 0.0, 10.0, disturbed
    return start


@each(
    "role, most, disturbed, allowed",
    [
        ("new", 1, 0, 1),
        ("new", None, 0, 9),
        ("baseline_control", 5, 0, 3),  # of each build
        ("new", 3, 9, 5),  # two disturbed ones do not count
        ("baseline_control", 3, 9, 5),
    ],
)
def test_each_role_has_a_limit_of_its_own(role, most, disturbed, allowed) -> None:
    starts = Starts()
    made(starts, "anchor_control")
    for number in range(allowed):
        assert starts.allows(role, most)
        made(starts, role, disturbed=number < disturbed)
    assert starts.allows(role, most) is (most is None)


def test_what_is_disturbed_is_repeated_twice_and_what_is_lost_once() -> None:
    starts = Starts()
    repeated = []
    for _ in range(3):
        made(starts, "reference", disturbed=True)
        repeated.append(starts.repeats("reference"))
    assert repeated == [True, True, False]
    assert [starts.lose(), starts.lose()] == [True, False]


@each("role, ends", [("new", True), ("baseline_control", True), ("reference", False)])
def test_the_scenarios_time_counts_both_builds_and_no_reference(role, ends) -> None:
    starts = Starts(budget_s=5.0)
    made(starts, role)
    assert (starts.out_of_time, starts.allows("new", 5)) == (ends, not ends)
    assert (starts.allows("baseline_control", None), starts.mean_s()) == (not ends, 10.0)
    told = list(starts.why_no_more(undecided=True, is_open=True))
    assert told == (["no more starts: 10 s used of gate.budget_s 5"] if ends else [])


@each(
    "starts, counted, seconds",
    [
        # One that serves three probes saves two.
        (
            [Start("new", served=3, began=0.0, ready_s=100.0, spent_s=160.0)],
            (1, 3),
            (160, 100, 200),
        ),
        ([Start("new", served=2, offline=1, began=0.0)], (2, 3), (0, 0, 0)),
        # One that was never ready saves nothing; one that never began is none.
        ([Start("new", began=0.0, spent_s=60.0), Start("new")], (1, 1), (60, 0, 0)),
        (
            [Start("new", served=2, began=0.0, ready_s=one) for one in (None, 10.0, 30.0)],
            (3, 6),
            (0, 40, 60),
        ),
    ],
)
def test_starts_are_counted_as_made_and_as_they_would_be_without_sharing(
    starts, counted, seconds
) -> None:
    expected = GroupStarts(
        planned=1, made=counted[0], without_sharing=counted[1], again=0, controls=0
    )
    spent, starting, saved = seconds
    times = GroupSeconds(spent=spent, starting=starting, saved=saved)
    assert totals([Starts(planned=1, made=starts)]) == (expected, times)
