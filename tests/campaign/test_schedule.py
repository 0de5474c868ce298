"""The order of a campaign's starts."""

from perfgate.campaign.schedule import Schedule, StartRole, around_own_reference, controlled_by


def test_one_start_comes_before_the_first_judgement() -> None:
    assert Schedule().opening == ("new",)


def test_nothing_follows_what_is_decided() -> None:
    assert Schedule().after(new=False, controls=()) == ()


def test_a_control_comes_before_the_next_start_of_the_build_under_test() -> None:
    assert Schedule().after(new=True, controls={"baseline"}) == ("baseline_control",)
    assert Schedule().after(new=True, controls=()) == ("new",)


def test_each_build_has_a_control_of_its_own() -> None:
    wanted = Schedule().after(new=True, controls={"anchor", "baseline"})
    assert wanted == ("baseline_control", "anchor_control")
    assert Schedule().after(new=True, controls={"anchor"}) == ("anchor_control",)


def test_a_reference_of_this_session_stands_around_the_build_under_test() -> None:
    assert around_own_reference(3).opening == ("reference", "new", "reference", "reference")
    assert around_own_reference(3).after(new=True, controls=()) == ("new",)


def test_only_controls_are_controls() -> None:
    roles: tuple[StartRole, ...] = ("reference", "new", "baseline_control", "anchor_control")
    assert [controlled_by(role) for role in roles] == [None, None, "baseline", "anchor"]
