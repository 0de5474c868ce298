"""Pinning: nothing at the document's release; at any other, the defaults of then, spelled out."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tables import each
from trtllm_scenarios import offline, render, scenario, served

from perfgate.core.errors import InputError
from perfgate.scenarios.scenario import EngineSettings, Scenario

BENCHED = scenario(
    settings=EngineSettings(tp=8, max_batch_size=64), workload=offline(), release="1.0.0"
)
SERVED = scenario(settings=EngineSettings(tp=8), workload=served(), release="1.0.0")


def file(case: Scenario, version: str) -> dict[str, Any]:
    files = render(case, version).files
    return yaml.safe_load(next(iter(files.values()))) if files else {}


@each("case", [BENCHED, SERVED], ids=["bench", "serve"])
@each("version", ["1.0.0", "1.0", "1.0.0+local"])
def test_nothing_is_added_at_the_documents_release(case: Scenario, version: str) -> None:
    command = render(case, version)
    assert (command.files, command.env) == ({}, {})
    assert "--backend" not in command.argv


def test_what_a_release_cannot_do_as_then_is_refused() -> None:
    case = scenario(settings=EngineSettings(tp=8), workload=offline(), release="1.1.0")
    with pytest.raises(
        InputError,
        match=r"(?s)chunked_context: TensorRT-LLM 0\.19\.0 cannot.*"
        r"document's release 1\.1\.0 does by itself",
    ):
        render(case, "0.19.0")


@each("case", [BENCHED, SERVED], ids=["bench", "serve"])
def test_telemetry_is_off_unless_the_scenario_says_otherwise(case: Scenario) -> None:
    name = "TRTLLM_NO_USAGE_STATS"
    assert render(case, "1.4.0rc0").env == {name: "1", "TRTLLM_ENABLE_PDL": "0"}
    assert name not in render(case, "1.3.0").env
    assert render(replace(case, environment={name: "0"}), "1.4.0rc0").env[name] == "0"


def test_a_variable_that_the_scenario_names_is_never_replaced() -> None:
    case = scenario(
        settings=EngineSettings(tp=8),
        workload=offline(),
        environment={"TRTLLM_ENABLE_PDL": "1", "TRTLLM_DG_ENABLED": "0"},
    )
    assert render(case, "1.2.0").env == {"TRTLLM_ENABLE_PDL": "1", "TRTLLM_DG_ENABLED": "0"}
