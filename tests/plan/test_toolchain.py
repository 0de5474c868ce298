"""The programs of a scenario: what they are compared by, which names and releases are known."""

from dataclasses import replace

import pytest
from building import SCENARIO, with_extra_options
from tables import each

from perfgate.baselines import Entry
from perfgate.core.errors import InputError
from perfgate.core.files.paths import repository
from perfgate.engines.base import Engine, engine
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.engines.tensorrt_llm.table import SERVE, TABLES, THROUGHPUT
from perfgate.plan.toolchain import (
    BuildOverride,
    option_for,
    registered,
    toolchain_for,
    uncovered,
)
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.probe import Probe, all_probes, load_probes
from perfgate.scenarios.scenario import Scenario


def fingerprint(probe: Probe, release: str = "1.0", **versions: str) -> dict[str, str]:
    tools = toolchain_for(probe.scenario, override=BuildOverride(release, "abc"))
    known = {"aiperf": "1", "lm_eval": "2", **versions}
    vars(tools).update(model_facts={"sha256": "0" * 64}, versions=known)
    return tools.fingerprint(probe, {"cpu": "Grace"})


def test_extra_options_are_a_fact_that_a_difference_names() -> None:
    plain, extra = fingerprint(load_probes(SCENARIO)[1]), fingerprint(with_extra_options())
    assert "extra_options" not in plain
    assert extra["extra_options"] == "server --workers 4"
    told = Entry(plain, ()).differences(extra)
    assert "extra_options: measured server --workers 4, baseline none" in told
    assert any(one.startswith("content: ") for one in told)
    *_, task = all_probes(with_extra_options().scenario)
    assert fingerprint(task)["extra_options"] == "server --workers 4"


@each(
    "name, version, engines, expected",
    [
        ("vllm-bench", "0.11.0", ("0.10.2", "0.11.0", "1"), "vllm-bench 0.11.0"),
        ("sglang-bench", "0.5.3", ("0.5.3",), "sglang-bench 0.5.3"),
        ("benchmark_serving", "1.1.0", ("1.1.0",), "benchmark_serving"),
    ],
)
def test_a_pinned_client_is_told_with_its_release_and_the_engines_own_without(
    name: str, version: str, engines: tuple[str, ...], expected: str
) -> None:
    """A pinned one stays the same when the engine reaches its release and moves on."""
    assert SCENARIO.workload is not None
    scenario = replace(SCENARIO, workload=replace(SCENARIO.workload, client=name))
    probe = load_probes(scenario)[0]
    assert {fingerprint(probe, one, **{name: version})["client"] for one in engines} == {expected}


def test_the_documented_scenarios_name_what_is_registered() -> None:
    known = registered()
    assert load_suite(repository() / "scenarios", known).scenarios
    assert set(known.smoke_clients) == {"completion", "trtllm-bench", "trtllm-quickstart"}
    assert {"aiperf", "vllm-bench"} < set(known.clients)


def test_an_engine_counts_from_when_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_classes", dict(engine._classes))
    assert "mine" not in registered().engines
    engine("mine")(type("Mine", (Engine,), {}))
    assert registered().engines["mine"] == {}


def test_every_word_of_a_release_is_known() -> None:
    words = TensorRTLLM.words()
    for release in TABLES.all():
        for program in (THROUGHPUT, SERVE):
            assert {*release.choices(program, "backend")} <= words["backend"]
        assert {default.backend for default in release.defaults.values()} <= words["backend"]
        assert (release.moe_backends or frozenset()) <= words["moe_backend"]


def of(*engines: str) -> list[Scenario]:
    return [replace(SCENARIO, engine=replace(SCENARIO.engine, name=name)) for name in engines]


def test_the_coverage_of_a_release_is_asked_once_of_each_engine_that_has_tables() -> None:
    scenarios = of("tensorrt-llm", "llama.cpp", "tensorrt-llm")
    (told,) = uncovered(scenarios, "99")
    assert "TensorRT-LLM 99" in told
    assert uncovered(scenarios, None) == uncovered(scenarios, "1.0.0") == ()
    assert uncovered(of("llama.cpp"), "zzz") == ()
    with pytest.raises(InputError, match="not a version"):
        uncovered(of("llama.cpp", "tensorrt-llm"), "zzz")


@each(
    ("said", "name", "release"),
    [
        ("1.3.0", "tensorrt-llm", "1.3.0"),
        ("1.3.0", "vllm", None),
        ("1.3.0", "sglang", None),
        ("vllm=0.33.0", "vllm", "0.33.0"),
        ("vllm=0.33.0", "sglang", None),
        ("vllm=0.33.0", "tensorrt-llm", None),
        (None, "tensorrt-llm", None),
    ],
)
def test_a_bare_release_is_tensorrt_llms(said: str | None, name: str, release: str | None) -> None:
    assert option_for(name, said) == release
    assert BuildOverride(said, said).of(name) == BuildOverride(release, release)


def test_a_bare_release_of_nothing_that_is_measured_is_refused() -> None:
    with pytest.raises(InputError, match="vllm=RELEASE"):
        uncovered(of("vllm"), "0.33.0")
    assert uncovered(of("vllm"), "vllm=0.33.0") == ()
    assert uncovered(of("vllm", "tensorrt-llm"), "1.3.0") == ()
    # One scenario can mean no other engine.
    assert option_for("vllm", "0.33.0", alone=True) == "0.33.0"
