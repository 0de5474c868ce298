"""The documented set: the scenarios and claims of the five documents, for tests that count them.

A checkout may hold scenarios beside them, a person's own: no test of the documents counts those.
"""

from functools import cache
from pathlib import Path

from perfgate.scenarios.files import LoadedSuite, load_suite

ROOT = Path(__file__).parents[1]

BLOG = "Best_perf_practice_on_DeepSeek-R1_in_TensorRT-LLM.md"
RECIPE = "quick-start-recipe-for-deepseek-r1-on-trtllm.md"
EXAMPLE = "TensorRT-LLM examples/deepseek_v3/README.md"
GB200_RECIPE = "NVIDIA dgxc-benchmarking deepseek_r1/inference/README.md"
LAB = "Optimizing DeepSeek-R1 Throughput on NVIDIA H200 GPUs (GPUStack performance lab)"
DOCUMENTS = frozenset({BLOG, RECIPE, EXAMPLE, GB200_RECIPE, LAB})


@cache
def documented_suite() -> LoadedSuite:
    """The checkout's suite without the scenarios and claims of other documents."""
    suite = load_suite(ROOT / "scenarios")
    return LoadedSuite(
        tuple(one for one in suite.scenarios if one.source.document in DOCUMENTS),
        tuple(one for one in suite.claims if one.source.document in DOCUMENTS),
        suite.markers,
    )
