"""What a fresh start adds to a client's measurement: cost in CPU time, throughput per GPU."""

from dataclasses import replace

import building
import pytest

from perfgate.fresh_start import _cpu_cost, _per_gpu
from perfgate.measurement import Measurement
from perfgate.scenarios.scenario import Hardware, LoadPoint

POINT = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)


def test_cpu_cost_counts_warm_up_requests_in_time_and_tokens() -> None:
    measured = Measurement({}, {"osl": 32.0, "requests_completed": 16})
    # 20 requests of 32 tokens are 640 tokens.
    assert _cpu_cost(measured, POINT, 6.4) == {"server_cpu_s_per_1k_tokens": pytest.approx(10.0)}


@pytest.mark.parametrize(
    ("facts", "cpu_s"),
    [({"requests_completed": 16}, 6.4), ({"osl": 32.0}, 6.4)]
    + [({"osl": 32.0, "requests_completed": 16}, 0.0)],
)
def test_an_unknown_cpu_cost_is_left_out_and_never_zero(
    facts: dict[str, float], cpu_s: float
) -> None:
    assert _cpu_cost(Measurement({}, facts), POINT, cpu_s) == {}


def test_throughput_per_gpu_exists_where_there_are_gpus() -> None:
    measured = Measurement({"output_throughput": 800.0})
    eight = replace(building.SCENARIO, hardware=Hardware("B200", 8))
    none = replace(building.SCENARIO, hardware=Hardware("none", 0))
    assert _per_gpu(measured, eight) == {"output_throughput_per_gpu": 100.0}
    assert _per_gpu(measured, none) == {}
