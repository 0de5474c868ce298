"""What a server runs with is held against what was asked; what differs is an error with both."""

from dataclasses import replace
from typing import Any

import pytest
from tables import each

from perfgate.core.errors import FAILURES, RunError
from perfgate.core.files.paths import repository
from perfgate.engines.effective_settings import (
    EffectiveSettings,
    not_established,
    require_effective_settings,
)
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Mtp, Scenario


def asked(inert: dict[str, str] | None = None, **settings: Any) -> Scenario:
    scenario = load_scenarios(repository() / "scenarios" / "local" / "smollm2.yaml")[0]
    engine = replace(scenario.engine, settings=EngineSettings(**settings), inert=inert)
    return replace(scenario, engine=engine)


def found(**settings: Any) -> EffectiveSettings:
    return EffectiveSettings(settings, source="/server_info")


@each(
    ("settings", "told"),
    [
        ({"tp": 8}, {"tp": 8}),
        ({"tp": 8}, {"dp": 4}),  # not asked
        ({"kv_cache_fraction": 0.9}, {"kv_cache_fraction": 0.9 + 1e-9}),
        ({"mtp": Mtp(1)}, {"mtp": {"layers": 1}}),
        ({"attention_dp": False}, {"attention_dp": None}),
        ({"attention_dp": True}, {}),  # not told
    ],
)
def test_what_is_in_force_is_a_fact(settings: dict[str, Any], told: dict[str, Any]) -> None:
    facts = require_effective_settings(asked(**settings), found(**told))
    assert facts["settings_in_force"] == told
    assert facts["settings_told_by"] == "/server_info"
    assert "settings_inert" not in facts


@pytest.mark.parametrize(
    ("settings", "told", "words"),
    [
        ({"attention_dp": True}, {"attention_dp": False}, "asked True, in force False"),
        ({"max_batch_size": 1000}, {"max_batch_size": 48}, "asked 1000, in force 48"),
        ({"mtp": Mtp(2)}, {"mtp": {"layers": 1}}, "asked {'layers': 2}, in force {'layers': 1}"),
        ({"kv_cache_dtype": "fp8"}, {"kv_cache_dtype": None}, "asked fp8, in force nothing"),
    ],
)
def test_what_is_not_in_force_is_an_error_with_both_values(
    settings: dict[str, Any], told: dict[str, Any], words: str
) -> None:
    with pytest.raises(RunError) as caught:
        require_effective_settings(asked(**settings), found(**told))
    assert caught.value.failure == "not_in_force"
    assert words in caught.value.message
    assert FAILURES["not_in_force"].next_step


def test_a_setting_that_is_known_to_be_inert_is_told_and_no_error() -> None:
    scenario = asked({"attention_dp": "without dp it is reset"}, attention_dp=True, tp=8)
    facts = require_effective_settings(scenario, found(attention_dp=False, tp=8))
    assert facts["settings_inert"] == [
        "attention_dp: asked True, in force False: without dp it is reset"
    ]
    with pytest.raises(RunError, match="tp: asked 8, in force 1"):
        require_effective_settings(scenario, found(attention_dp=False, tp=1))


def test_what_bounds_the_load_is_a_fact() -> None:
    facts = require_effective_settings(asked(tp=8), replace(found(tp=8), limits=("48 at most",)))
    assert facts["settings_limited"] == ["48 at most"]


def test_an_inert_setting_that_is_in_force_after_all_is_told() -> None:
    scenario = asked({"attention_dp": "without dp it is reset"}, attention_dp=True)
    facts = require_effective_settings(scenario, found(attention_dp=True))
    assert facts["settings_no_longer_inert"] == ["attention_dp"]


def test_what_is_known_to_be_inert_does_not_change_what_is_measured() -> None:
    plain = asked(attention_dp=True)
    assert asked({"attention_dp": "why"}, attention_dp=True).content_hash() == plain.content_hash()


GRAPHS = {"cuda_graphs": CudaGraphs(padding=True, batch_sizes=(1, 8))}


@each(
    ("settings", "told", "names"),
    [
        ({"kv_cache_dtype": "fp8", "mtp": Mtp(0), "attention_dp": False}, {"tp": 1}, 3),
        ({"kv_cache_dtype": "auto", "tp": 8, "max_batch_size": 8}, {}, []),  # nothing to ignore
        ({"attention_dp": True}, {"attention_dp": True}, []),
        (GRAPHS, {}, ["cuda_graphs"]),
        (GRAPHS, {"cuda_graphs": {"enabled": True}}, ["padding", "batch_sizes"]),
        (GRAPHS, {"cuda_graphs": {"enabled": True, "padding": True, "batch_sizes": [1, 8]}}, []),
    ],
)
def test_what_may_be_ignored_and_is_not_told_is_not_established(
    settings: dict[str, Any], told: dict[str, Any], names: list[str] | int
) -> None:
    facts = not_established(asked(**settings), found(**told))
    silent = facts.get("settings_not_established", {})
    assert isinstance(silent, dict)
    if isinstance(names, int):
        assert len(silent) == names
    else:
        assert [one.rpartition(".")[2] for one in silent] == names
    assert set(silent.values()) <= {"/server_info does not tell"}


def test_what_is_known_to_be_inert_needs_no_word_of_the_server() -> None:
    assert not_established(asked({"attention_dp": "why"}, attention_dp=True), found()) == {}
