"""Pins: what moved without a word is spelled out at every release but the document's own."""

import pytest
from vllm_scenarios import build, rendered, scenario

from perfgate.engines.vllm.engine import Vllm

START = "vllm serve deepseek-ai/DeepSeek-R1-0528 -tp 8"


@pytest.mark.parametrize("version", ["0.11.0", "0.11.0+cu129", "0.33.0"])
def test_without_a_document_or_at_its_release_nothing_is_added(version: str) -> None:
    assert rendered(scenario(tp=8), version) == START
    assert rendered(scenario(version.partition("+")[0], tp=8), version) == START


def test_what_the_scenario_says_is_never_replaced() -> None:
    case = scenario("0.11.0", tp=8, kv_cache_fraction=0.8, kv_cache_reuse=False, seed=3)
    found = Vllm().pinned(case, build("0.33.0"))
    assert (found.kv_cache_fraction, found.kv_cache_reuse, found.seed) == (0.8, False, 3)
    assert found.overlap_scheduler is False
