"""The order of a campaign's starts."""

from tables import each

from perfgate.campaign.schedule import (
    Schedule,
    around_own_reference,
    taking_turns,
)


def test_one_start_comes_before_the_first_judgement() -> None:
    assert Schedule().opening == ("new",)


def test_nothing_follows_what_is_decided() -> None:
    assert Schedule().after(new=False, controls=()) == ()


def test_a_control_comes_before_the_next_start_of_the_build_under_test() -> None:
    assert Schedule().after(new=True, controls={"baseline"}) == ("baseline_control",)
    assert Schedule().after(new=True, controls=()) == ("new",)
    wanted = Schedule().after(new=True, controls={"anchor", "baseline"})
    assert wanted == ("baseline_control", "anchor_control")


def test_a_reference_of_this_session_stands_around_the_build_under_test() -> None:
    assert around_own_reference(3).opening == ("reference", "new", "reference", "reference")
    assert around_own_reference(3).after(new=True, controls=()) == ("new",)


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
    letters = {"reference": "R", "new": "N"}
    schedule = taking_turns(references, most)
    assert "".join(letters[role] for role in schedule.opening) == opening
    assert "".join(letters[role] for role in schedule.after(new=True, controls=())) == then


@each("references", range(2, 9))
def test_a_drift_of_the_machine_cancels_out(references: int) -> None:
    opening = taking_turns(references, 6).opening
    assert opening == opening[::-1]
    assert opening.count("reference") == references
    assert opening.count("new") == 4
