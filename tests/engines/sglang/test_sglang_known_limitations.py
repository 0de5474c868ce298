"""What is known not to be in force is told before a start, by the engine's own name for it."""

from dataclasses import replace

import pytest
from sglang_scenarios import COMPILED, DP, EAGLE, ENGINE, LOAD, TP, build, scenario

from perfgate.cli.main import main
from perfgate.scenarios.scenario import EngineSettings


def told(settings: EngineSettings, version: str = "0.5.3") -> list[str]:
    found = ENGINE.known_limitations(scenario(settings), build(version))
    return [line.partition(":")[0] for line in found]


def test_where_the_scenario_says_it_itself_it_is_not_told_again() -> None:
    known = scenario(DP, inert={"attention_dp": "one part is no division"})
    assert ENGINE.known_limitations(known, build()) == ()
    assert told(DP, "0.4.2") == []  # it divides the attention by itself


def test_limits_of_the_server_that_are_below_the_load() -> None:
    assert told(COMPILED) == ["attention_dp", "torch_compile"]
    assert told(EAGLE) == ["attention_dp", "mtp", "torch_compile"]
    (line,) = ENGINE.known_limitations(scenario(replace(TP, mtp=EAGLE.mtp)), build())
    assert "at most 48 requests at once" in line
    assert "1000 are in flight" in line
    assert told(replace(TP, mtp=EAGLE.mtp, max_batch_size=1000)) == []


def test_a_load_below_them_is_not_warned_of() -> None:
    few = replace(LOAD, concurrency=(16,), requests=100, capped=True)
    case = scenario(replace(EAGLE, dp=8), workload=few)
    assert ENGINE.known_limitations(case, build()) == ()


@pytest.mark.parametrize("call", [["plan"], ["scenarios", "command"]], ids=" ".join)
def test_plan_and_command_tell_it(call: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*call, "h200-r1-0528-lab-sglang-dp-compile-mtp-sharegpt"]) == 0
    told = capsys.readouterr().out
    assert "mtp: SGLang runs at most 48 requests at once" in told
    assert "torch_compile: SGLang compiles for batches of up to 32" in told
