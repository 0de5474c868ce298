"""Numbers of one report that contradict each other are none, and rows of a table are known."""

import pytest
from refusals import refused
from tables import each

from perfgate.clients.report_tables import (
    AIPERF,
    SERVING,
    TRTLLM_BENCH,
    Table,
    require_consistent,
    require_ordered,
)
from perfgate.core.errors import RunError
from perfgate.core.metrics import METRICS


@pytest.mark.parametrize("table", [TRTLLM_BENCH, SERVING, AIPERF])
def test_rows_are_of_canonical_metrics_and_no_label_is_of_two(table: Table) -> None:
    assert set(table.metrics) <= set(METRICS)
    rows = {**table.metrics, **table.facts}
    for found in ("keys", "labels"):
        named = [one for row in rows.values() for one in getattr(row, found)]
        assert len(named) == len({one.lower() for one in named})


def test_a_product_may_be_off_by_the_rounding_of_its_factors() -> None:
    # vLLM, random 32K input, in the GPUStack H200 lab: 0.48 req/s × 206.90 s are 99.3 requests.
    completed = {"requests_completed": 100}
    require_consistent({"request_throughput": 0.48, "duration_s": 206.9}, completed, 0.005)
    wrong = {"request_throughput": 2.0, "duration_s": 100.0}
    error = refused(require_consistent, wrong, completed, error=RunError)
    assert error.failure == "no_metrics"
    assert "2 × 100 = 200, not 100" in error.message


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
    refused(require_ordered, wrong, error=RunError, match="contradicts itself")


def test_one_user_alone_may_be_a_little_faster_than_the_whole() -> None:
    # B200 min-latency of the best-practice document; the mean of rates is not the rate of sums.
    require_ordered({"output_throughput_per_user": 274.7188, "output_throughput": 274.4168})


def test_throughput_per_gpu_adds_up_to_that_of_a_whole_number_of_gpus() -> None:
    numbers = {"output_throughput": 43146.2042, "output_throughput_per_gpu": 5393.2755}
    require_consistent(numbers, {"gpus": 8})
    require_consistent(numbers, {})
    require_consistent({"output_throughput": 100.0}, {"gpus": 8})
    refused(
        require_consistent, numbers, {"gpus": 16}, error=RunError, match=r"5393\.28 × 16 = 86292"
    )
    part = {"output_throughput": 100.0, "output_throughput_per_gpu": 40.0}
    refused(require_consistent, part, {}, error=RunError, match="per GPU × GPUs")
