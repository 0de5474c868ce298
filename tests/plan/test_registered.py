"""The vocabulary of scenarios is what the registries hold, one's own included."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from perfgate.core.paths import repository
from perfgate.engines.base import Engine, engine
from perfgate.engines.tensorrt_llm.releases import all_releases
from perfgate.engines.tensorrt_llm.words import WORDS
from perfgate.evaluators.lm_eval import own_tasks
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
    for release in all_releases():
        assert release.bench_backends | release.serve_backends <= WORDS["backend"]
        assert {default.backend for default in release.defaults.values()} <= WORDS["backend"]
        assert (release.moe_backends or frozenset()) <= WORDS["moe_backend"]


def scores_of(file: Path) -> set[str]:
    """What a task's file says of its scores; its functions are left out."""
    kept = [line for line in file.read_text().splitlines() if "!function" not in line]
    task = yaml.safe_load("\n".join(kept))
    metrics = [one["metric"] for one in task["metric_list"]]
    return {f"{metric}:{one['name']}" for metric in metrics for one in task["filter_list"]}


def test_the_scores_of_perfgates_own_task_are_those_of_its_file() -> None:
    file = own_tasks() / "perfgate_arithmetic" / "perfgate_arithmetic.yaml"
    assert registered().evaluators["lm_eval"]["perfgate_arithmetic"] == scores_of(file)


def test_the_scores_of_gsm8k_are_those_of_lm_evals_file() -> None:
    found = find_spec("lm_eval")
    if found is None or found.origin is None:
        pytest.skip("lm_eval is not installed")
    file = Path(found.origin).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    assert registered().evaluators["lm_eval"]["gsm8k"] == scores_of(file)
