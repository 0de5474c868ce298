"""Identities: numbers of one report that contradict each other are none."""

import pytest
from tables import each

from perfgate.clients.identities import require_gpus, require_ordered, require_product
from perfgate.core.errors import RunError


def test_a_product_may_be_off_by_the_rounding_of_its_factors() -> None:
    # vLLM, random 32K input, in the GPUStack H200 lab: 0.48 req/s × 206.90 s are 99.3 requests.
    require_product("rate × duration = requests", 0.48, 206.90, 100, rounding=0.005)


def test_a_product_that_is_wrong_shows_the_arithmetic() -> None:
    with pytest.raises(RunError) as caught:
        require_product("rate × duration = requests", 2.0, 100.0, 100)
    assert caught.value.failure == "no_metrics"
    assert "2 × 100 = 200, not 100" in caught.value.message


@each(
    "wrong",
    [
        {"output_throughput_per_user": 150.0, "output_throughput": 100.0},
        {"output_throughput_per_gpu": 102.0, "output_throughput": 100.0},
        {"request_throughput": 1341.5, "output_throughput": 274.4},
        {"output_throughput": 100.0, "total_token_throughput": 90.0},
        {"ttft_mean_ms": 50.0, "mean_request_latency_ms": 40.0},
        {"tpot_median_ms": 30.0, "tpot_p99_ms": 20.0},
        {"e2el_p90_ms": 30.0, "e2el_p95_ms": 20.0, "e2el_p99_ms": 40.0},
        {"mean_request_latency_ms": 2000.0, "duration_s": 1.0},
    ],
)
def test_a_part_is_not_larger_than_the_whole(wrong: dict[str, float]) -> None:
    with pytest.raises(RunError, match="contradicts itself"):
        require_ordered(wrong)


def test_one_user_alone_may_be_a_little_faster_than_the_whole() -> None:
    # B200 min-latency of the best-practice document; the mean of rates is not the rate of sums.
    require_ordered({"output_throughput_per_user": 274.7188, "output_throughput": 274.4168})


def test_throughput_per_gpu_adds_up() -> None:
    numbers = {"output_throughput": 43146.2042, "output_throughput_per_gpu": 5393.2755}
    require_gpus(numbers, 8)
    require_gpus(numbers, None)
    with pytest.raises(RunError, match=r"5393\.28 × 16 = 86292"):
        require_gpus(numbers, 16)


def test_an_unknown_number_of_gpus_is_a_whole_one() -> None:
    with pytest.raises(RunError, match="per GPU × GPUs"):
        require_gpus({"output_throughput": 100.0, "output_throughput_per_gpu": 40.0}, None)
    require_gpus({"output_throughput": 100.0}, 8)
