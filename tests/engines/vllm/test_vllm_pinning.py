"""Pins: what moved without a word is spelled out at every release but the document's own."""

from typing import Any

import pytest
from tables import each
from vllm_scenarios import build, rendered, scenario

from perfgate.engines.vllm.engine import Vllm
from perfgate.scenarios.scenario import EngineSettings

START = "vllm serve deepseek-ai/DeepSeek-R1-0528 -tp 8"


@pytest.mark.parametrize("version", ["0.11.0", "0.11.0+cu129", "0.33.0"])
def test_without_a_document_or_at_its_release_nothing_is_added(version: str) -> None:
    assert rendered(scenario(tp=8), version) == START
    assert rendered(scenario(version.partition("+")[0], tp=8), version) == START


PLAIN = {"kv_cache_fraction": 0.9, "kv_cache_reuse": True, "chunked_context": True}


@each(
    ("documented", "version", "pins"),
    [
        ("0.6.6.post1", "0.8.5", {"kv_cache_fraction": 0.9, "kv_cache_reuse": False, "seed": 0}),
        ("0.8.5", "0.11.0", PLAIN),
        ("0.11.0", "0.33.0", {**PLAIN, "overlap_scheduler": False}),
        ("0.12.0", "0.11.0", {**PLAIN, "overlap_scheduler": False, "seed": 0}),
        ("0.14.0", "0.33.0", {**PLAIN, "seed": 0}),
        ("0.20.0", "0.14.0", {**PLAIN, "kv_cache_fraction": 0.92, "seed": 0}),
        ("0.33.0", "0.11.0", {**PLAIN, "kv_cache_fraction": 0.92, "seed": 0}),
    ],
)
def test_the_defaults_of_the_documents_release_are_spelled_out_at_another(
    documented: str, version: str, pins: dict[str, Any]
) -> None:
    found = vars(Vllm().pinned(scenario(documented, tp=8), build(version)))
    assert found == {**vars(EngineSettings(tp=8)), **pins}


def test_what_the_scenario_says_is_never_replaced() -> None:
    case = scenario("0.11.0", tp=8, kv_cache_fraction=0.8, kv_cache_reuse=False, seed=3)
    found = Vllm().pinned(case, build("0.33.0"))
    assert (found.kv_cache_fraction, found.kv_cache_reuse, found.seed) == (0.8, False, 3)
    assert found.overlap_scheduler is False
