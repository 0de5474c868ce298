"""The vocabulary of scenarios is what the registries hold, one's own included."""

import pytest

from perfgate.core.paths import repository
from perfgate.engines.base import Engine, engine
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.engines.tensorrt_llm.table import SERVE, TABLES, THROUGHPUT
from perfgate.plan.registered import registered
from perfgate.scenarios.files import load_suite


def test_the_documented_scenarios_name_nothing_else() -> None:
    assert load_suite(repository() / "scenarios", registered()).scenarios


def test_a_first_answer_comes_from_the_server_or_an_offline_program() -> None:
    known = registered()
    assert set(known.smoke_clients) == {"completion", "trtllm-bench", "trtllm-quickstart"}
    assert {"aiperf", "vllm-bench"} < set(known.clients)


def test_an_engine_counts_from_when_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_classes", dict(engine._classes))
    assert "mine" not in registered().engines
    engine("mine")(type("Mine", (Engine,), {}))
    assert registered().engines["mine"] == {}


def test_every_word_of_a_release_is_known() -> None:
    for release in TABLES.all():
        for program in (THROUGHPUT, SERVE):
            assert {*release.choices(program, "backend")} <= TensorRTLLM.words()["backend"]
        assert {default.backend for default in release.defaults.values()} <= TensorRTLLM.words()[
            "backend"
        ]
        assert (release.moe_backends or frozenset()) <= TensorRTLLM.words()["moe_backend"]
