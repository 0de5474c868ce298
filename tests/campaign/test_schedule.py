"""The order of a campaign's starts."""

import building
from tables import each

from perfgate.campaign.schedule import (
    AB,
    CLAIMS,
    LoopState,
    Schedule,
    StartRole,
    around_own_reference,
    next_start,
    taking_turns,
)
from perfgate.scenarios.probe import load_probes

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
    ("schedule", "judged", "due", "open_for", "allowed", "comes", "then"),
    [
        # The opening, and what is left of a round, is made before anything is judged.
        (Schedule(), 0, "N", "N", "N", "N", ""),
        (OWN, 0, "RNRR", "RN", "RN", "R", "NRR"),
        (OWN, 0, "NRR", "RN", "", "N", "RR"),  # a round that was begun is made whole
        (OWN, 0, "NRR", "R", "RN", "R", "R"),  # what nobody needs is left out
        # After a judgement: controls of each build that is wanted, before the build under test.
        (Schedule(), 1, "", "N", "N", "N", ""),
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
        (AB, 5, "", "AB", "AB", "B", "A"),
        (AB, 6, "", "AB", "AB", "", ""),
        # Starts for claims are asked for by these.
        (CLAIMS, 0, "", "T", "T", "", ""),
    ],
)
def test_what_is_started_next(
    schedule: Schedule,
    judged: int,
    due: str,
    open_for: str,
    allowed: str,
    comes: str,
    then: str,
) -> None:
    serves = {role: (PROBE,) for role in roles(open_for)}
    state = LoopState(schedule, roles(due), serves, frozenset(roles(allowed)), judged)
    found = next_start(state)
    assert ("" if found is None else found.role) == "".join(roles(comes))
    assert (() if found is None else found.then) == roles(then)
    assert found is None or found.probes == (PROBE,)


def test_a_reference_of_this_session_stands_around_the_build_under_test() -> None:
    assert OWN.opening == roles("RNRR")


@each(
    ("references", "most", "opening", "then"),
    [
        (6, 6, "RRNNRRNNRR", "NN"),
        (4, 4, "RNNRRNNR", "NN"),
        (5, 5, "RRNNRNNRR", "N"),
        (8, 8, "RRRNNRRNNRRR", "NN"),
        (3, 3, "RNRNNR", "NN"),
        (1, 1, "RN", "NN"),
    ],
)
def test_references_take_turns_with_the_build_under_test(
    references: int, most: int, opening: str, then: str
) -> None:
    schedule = taking_turns(references, most)
    assert schedule.opening == roles(opening)
    assert schedule.further == (roles(then),)


@each("references", range(2, 9))
def test_a_drift_of_the_machine_cancels_out(references: int) -> None:
    opening = taking_turns(references, 6).opening
    assert opening == opening[::-1]
    assert opening.count("reference") == references
    assert opening.count("new") == 4
