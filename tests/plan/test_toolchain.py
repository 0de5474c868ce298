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
    assert "extra_options: measured server --workers 4, baseline none" in told
    assert any(one.startswith("content: ") for one in told)


def test_of_scores_too() -> None:
    scenario = with_extra_options().scenario
    (task,) = accuracy_probes(replace(scenario, engine=scenario.engine))
    assert fingerprint(task)["extra_options"] == "server --workers 4"


class TestWhoMeasured:
    """A pinned client is told with its release; one that comes with the engine is not."""

    def client(self, name: str, version: str, engine_version: str) -> str:
        assert SCENARIO.workload is not None
        scenario = replace(SCENARIO, workload=replace(SCENARIO.workload, client=name))
        tools = toolchain_for(scenario, override=BuildOverride(engine_version, "abc"))
        vars(tools).update(
            model_facts={"sha256": "0" * 64}, versions={name: version, "lm_eval": ""}
        )
        return tools.fingerprint(load_probes(scenario)[0], {})["client"]

    def test_a_client_of_another_release_is_another_client(self) -> None:
        assert self.client("vllm-bench", "0.11.0", "0.32.0") == "vllm-bench 0.11.0"
        assert self.client("sglang-bench", "0.5.3", "0.5.3") == "sglang-bench 0.5.3"

    def test_it_stays_the_same_when_the_engine_reaches_its_release_and_moves_on(self) -> None:
        told = {self.client("vllm-bench", "0.11.0", engine) for engine in ("0.10.2", "0.11.0", "1")}
        assert told == {"vllm-bench 0.11.0"}

    def test_the_engine_s_own_client_moves_with_it(self) -> None:
        assert self.client("benchmark_serving", "1.1.0", "1.1.0") == "benchmark_serving"
