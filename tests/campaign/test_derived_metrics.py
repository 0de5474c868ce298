"""What perfgate adds to the numbers of a load client."""

import math
from dataclasses import replace
from pathlib import Path

import building
import pytest

from perfgate.campaign.fresh_start import of_load, of_offline, write_server_cpu
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.scenarios.scenario import Hardware, LoadPoint

POINT = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)
ON_GPUS = replace(building.SCENARIO, hardware=Hardware("B200", 8))
ON_NONE = replace(building.SCENARIO, hardware=Hardware("none", 0))


def test_cpu_cost_counts_warm_up_requests_in_time_and_tokens(tmp_path: Path) -> None:
    write_server_cpu(tmp_path, 6.4)
    measured = Measurement({}, {"osl": 32.0, "requests_completed": 16})
    # 20 requests of 32 tokens are 640 tokens.
    assert of_load(measured, ON_NONE, POINT, tmp_path) == {
        "server_cpu_s_per_1k_tokens": pytest.approx(10.0)
    }


@pytest.mark.parametrize(
    ("facts", "cpu_s"),
    [({"requests_completed": 16}, 6.4), ({"osl": 32.0}, 6.4)]
    + [({"osl": 32.0, "requests_completed": 16}, cpu_s) for cpu_s in (0.0, math.nan)],
)
def test_an_unknown_cpu_cost_is_left_out_and_never_zero(
    tmp_path: Path, facts: dict[str, float], cpu_s: float
) -> None:
    write_server_cpu(tmp_path, cpu_s)
    assert of_load(Measurement({}, facts), ON_NONE, POINT, tmp_path) == {}


def test_a_reading_that_is_gone_is_no_zero(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"server_cpu\.json"):
        of_load(Measurement({}), ON_NONE, POINT, tmp_path)


def test_throughput_per_gpu_exists_where_there_are_gpus() -> None:
    measured = Measurement({"output_throughput": 800.0})
    assert of_offline(measured, ON_GPUS)["output_throughput_per_gpu"] == 100.0
    assert of_offline(measured, ON_NONE) == measured.metrics
