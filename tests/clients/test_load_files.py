"""What is added to the numbers of a load client."""

import math
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import building
import pytest
from refusals import refused
from tables import each

from perfgate.clients.load_files import of_load, parsed_offline, write_server_cpu
from perfgate.core.measurement import Measurement
from perfgate.scenarios.scenario import Hardware, LoadPoint

POINT = LoadPoint(concurrency=4, requests=16, warmup_requests=4, seed=1)
ON_GPUS = replace(building.SCENARIO, hardware=Hardware("B200", 8))
ON_NONE = replace(building.SCENARIO, hardware=Hardware("none", 0))
COMPLETED = {"osl": 32.0, "requests_completed": 16}


@each(
    "facts, cpu_s, cost",
    [
        (COMPLETED, 6.4, 10.0),  # 20 requests of 32 tokens, warm-up included, are 640 tokens
        # What is not known is left out, and never zero.
        ({"requests_completed": 16}, 6.4, None),
        ({"osl": 32.0}, 6.4, None),
        (COMPLETED, 0.0, None),
        (COMPLETED, math.nan, None),
    ],
)
def test_cpu_cost_counts_warm_up_requests_in_time_and_tokens(tmp_path, facts, cpu_s, cost) -> None:
    refused(of_load, Measurement({}, facts), ON_NONE, POINT, tmp_path, match=r"server_cpu\.json")
    write_server_cpu(tmp_path, cpu_s)
    expected = {} if cost is None else {"server_cpu_s_per_1k_tokens": pytest.approx(cost)}
    assert of_load(Measurement({}, facts), ON_NONE, POINT, tmp_path) == expected


def test_throughput_per_gpu_exists_where_there_are_gpus() -> None:
    measured = Measurement({"output_throughput": 800.0})
    program = Mock(parse=Mock(return_value=measured), require_asked=None)
    found = [parsed_offline(program, one, POINT, Path()) for one in (ON_GPUS, ON_NONE)]
    assert found[0].metrics["output_throughput_per_gpu"] == 100.0
    assert found[1] == measured
