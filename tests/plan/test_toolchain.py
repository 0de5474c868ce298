"""The toolchain of a scenario: what must be equal for its measurements to be compared."""

from dataclasses import replace

from building import SCENARIO, with_extra_options

from perfgate.baselines import Entry
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.scenarios.probe import Probe, accuracy_probes, load_probes


def fingerprint(probe: Probe) -> dict[str, str]:
    tools = toolchain_for(probe.scenario, override=BuildOverride("1.0", "abc"))
    known = Toolchain(
        tools.scenario, tools.engine, tools.clients, tools.evaluators, override=tools.override
    )
    vars(known).update(model_facts={"sha256": "0" * 64}, versions={"aiperf": "1", "lm_eval": "2"})
    return known.fingerprint(probe, {"cpu": "Grace"})


def test_extra_options_are_a_fact_that_a_difference_names() -> None:
    plain, extra = fingerprint(load_probes(SCENARIO)[1]), fingerprint(with_extra_options())
    assert "extra_options" not in plain
    assert extra["extra_options"] == "server --workers 4"
    told = Entry(plain, ()).differences(extra)
    assert "extra_options: measured server --workers 4, baseline unknown" in told
    assert any(one.startswith("content: ") for one in told)


def test_of_scores_too() -> None:
    scenario = with_extra_options().scenario
    (task,) = accuracy_probes(replace(scenario, engine=scenario.engine))
    assert fingerprint(task)["extra_options"] == "server --workers 4"
