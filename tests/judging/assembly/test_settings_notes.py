"""What a person is told of settings that are not in force, or bounded."""

from dataclasses import replace

from building import SCENARIO

from perfgate.core.measurement import Measurement
from perfgate.engines.in_force import InForce, require_in_force
from perfgate.judging.assembly.measured import settings_notes
from perfgate.scenarios.scenario import EngineSettings, Scenario

WHY = "SGLang resets it"


def scenario(**settings: bool) -> Scenario:
    """One that asks for settings, all of them known to be inert."""
    engine = replace(
        SCENARIO.engine,
        settings=EngineSettings(tp=8, **settings),
        inert=dict.fromkeys(settings, WHY) or None,
    )
    return replace(SCENARIO, engine=engine)


def measured(of: Scenario, found: InForce, starts: int = 1) -> list[Measurement]:
    """Fresh starts whose server said what `found` has."""
    return [Measurement({}, require_in_force(of, found))] * starts


def test_a_setting_that_the_server_does_not_run_with_is_told_once_with_both_values() -> None:
    dp = scenario(attention_dp=True)
    found = InForce({"tp": 8, "attention_dp": False}, source="/get_server_info")
    assert list(settings_notes(dp, measured(dp, found, starts=3))) == [
        f"not in force, as the scenario says: attention_dp: asked True, in force False: {WHY}"
    ]


def test_what_bounds_the_load_is_told() -> None:
    plain = scenario()
    found = InForce({"tp": 8}, limits=("max_running_requests 48, 1000 requests in flight",))
    assert list(settings_notes(plain, measured(plain, found))) == [
        "limited: max_running_requests 48, 1000 requests in flight"
    ]


def test_a_setting_that_came_to_be_in_force_is_told_with_what_to_do() -> None:
    dp = scenario(attention_dp=True)
    (note,) = settings_notes(dp, measured(dp, InForce({"attention_dp": True})))
    assert note.startswith("in force, which the scenario says it is not: attention_dp: ")
    assert "engine.inert.attention_dp" in note


def test_where_the_server_tells_nothing_the_scenario_does() -> None:
    dp = scenario(attention_dp=True)
    for facts in ({}, require_in_force(dp, InForce({"tp": 8}))):
        assert list(settings_notes(dp, [Measurement({}, facts)])) == [
            f"not in force, by the scenario alone, as the server does not tell: attention_dp: {WHY}"
        ]


def test_of_what_is_in_force_as_asked_and_of_nothing_measured_nothing_is_said() -> None:
    assert list(settings_notes(scenario(), measured(scenario(), InForce({"tp": 8})))) == []
    assert list(settings_notes(scenario(attention_dp=True), [])) == []


def test_what_the_server_does_not_tell_is_not_established_in_one_line_a_reason() -> None:
    settings = EngineSettings(tp=8, kv_cache_dtype="fp8", attention_dp=True)
    asked = replace(SCENARIO, engine=replace(SCENARIO.engine, settings=settings))
    starts = measured(asked, InForce({"tp": 8}, source="its log"), starts=2)
    assert list(settings_notes(asked, starts)) == [
        "not established: whether kv_cache_dtype, attention_dp is in force: its log does not tell"
    ]
