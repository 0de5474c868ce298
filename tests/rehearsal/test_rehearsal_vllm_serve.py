"""The stand-in of `vllm serve`: asked, served, told and failed as the real one is."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from playing import serving, staged

from perfgate.core.errors import CliDrift, InputError
from perfgate.core.failures import diagnose
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.in_force import require_in_force
from perfgate.engines.installed_programs import answer
from perfgate.engines.vllm.engine import Vllm
from perfgate.launchers.local.launcher import free_port
from perfgate.rehearsal.faults import FAULTS
from perfgate.scenarios.scenario import (
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    Hardware,
    Model,
    Mtp,
    Scenario,
    Source,
)

HOST = "127.0.0.1"


def scenario(
    extra: dict[str, tuple[str | int | float, ...]] | None = None, **settings: Any
) -> Scenario:
    return replace(
        SCENARIO,
        source=Source("document.md", "section", engine_version="0.11.0"),
        hardware=Hardware("H200", 8),
        model=Model("deepseek-ai/DeepSeek-R1-0528", "fp8"),
        engine=EngineChoice("vllm", EngineSettings(tp=8, **settings), extra_args=extra),
        workload=None,
        accuracy=(),
    )


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Puts the stand-ins of a release in place, where the engine finds them."""
    answer.cache_clear()

    def put(case: Scenario, version: str, fault: str | None = None) -> Locations:
        for name, value in staged(tmp_path / "stage", f"vllm={version}", fault, [case]).env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PERFGATE_SCENARIO", case.id)
        return Locations(models=tmp_path / "stage" / "models")

    yield put
    answer.cache_clear()


@contextmanager
def served(case: Scenario, version: str, here: Locations, folder: Path) -> Iterator[Endpoint]:
    known = Vllm()
    endpoint = Endpoint(HOST, free_port(HOST), known.served_model(case, here))
    command = known.serve(case, EngineBuild("vllm", version, version), endpoint, here)
    with serving(command.argv, endpoint.url, folder, {**os.environ, **command.env}) as server:
        yield endpoint
        server.terminate()
        assert server.wait(10) == 0


@pytest.mark.parametrize("version", ["0.6.6.post1", "0.8.5", "0.11.0", "0.32.0", "0.33.0"])
def test_its_release_is_told_and_what_is_rendered_is_asked_of_its_help(
    stage: Any, version: str
) -> None:
    case = scenario(kv_cache_reuse=False, max_batch_size=64, cuda_graphs=CudaGraphs(enabled=False))
    here, build = stage(case, version), EngineBuild("vllm", version, version)
    assert Vllm().build(here) == build
    command = Vllm().serve(case, build, Endpoint(HOST, 8000, "m"), here)
    assert Vllm().verify(build, [command], here) == ()


def test_a_table_of_another_release_is_found_before_a_start(stage: Any) -> None:
    case = scenario(cuda_graphs=CudaGraphs(batch_sizes=(1, 8)))
    here, wrong = stage(case, "0.33.0"), EngineBuild("vllm", "0.11.0", "0.11.0")
    command = Vllm().serve(case, wrong, Endpoint(HOST, 8000, "m"), here)
    with pytest.raises(CliDrift) as caught:
        Vllm().verify(wrong, [command], here)
    assert "no option --cuda-graph-sizes" in str(caught.value)
    assert "releases/0.10.0.yaml:" in str(caught.value)


def test_an_extra_option_that_it_lacks_is_named_by_its_field(stage: Any) -> None:
    case = scenario({"vllm": ("--enable-mamba-magic",)})
    here, build = stage(case, "0.11.0"), EngineBuild("vllm", "0.11.0", "0.11.0")
    command = Vllm().serve(case, build, Endpoint(HOST, 8000, "m"), here)
    with pytest.raises(InputError, match=r"small-serve\.engine\.extra_args\.vllm\[0\]"):
        Vllm().verify(build, [command], here)


@pytest.mark.parametrize(
    ("version", "settings"),
    [
        ("0.6.6.post1", {"kv_cache_reuse": False, "chunked_context": True}),
        ("0.8.5", {"kv_cache_reuse": False, "torch_compile": False}),
        ("0.11.0", {"cuda_graphs": CudaGraphs(batch_sizes=(1, 8)), "mtp": Mtp(2)}),
        ("0.11.0", {"cuda_graphs": CudaGraphs(max_batch_size=64), "quantization": "fp8"}),
        ("0.32.0", {"cuda_graphs": CudaGraphs(enabled=False), "torch_compile": True}),
        ("0.33.0", {"kv_cache_reuse": False, "overlap_scheduler": False, "max_seq_len": 4096}),
    ],
)
def test_the_server_answers_and_its_log_tells_what_was_asked(
    stage: Any, tmp_path: Path, version: str, settings: dict[str, Any]
) -> None:
    case = scenario(**settings)
    here = stage(case, version)
    with served(case, version, here, tmp_path) as endpoint:
        with urllib.request.urlopen(endpoint.url + "/v1/models") as told:
            assert json.load(told)["data"][0]["id"] == case.model.name
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(endpoint.url + "/server_info")
        log = (tmp_path / "server.out").read_text().splitlines()
    found = Vllm().in_force(case, {}, log)
    assert found is not None
    facts = require_in_force(case, found)
    assert facts["settings_told_by"] == "its log"
    assert settings.keys() - {"max_batch_size"} <= found.settings.keys()


def test_in_its_development_mode_it_tells_its_settings_over_http(
    stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = scenario(kv_cache_reuse=False)
    here = stage(case, "0.11.0")
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    with served(case, "0.11.0", here, tmp_path) as endpoint:
        path = Vllm.settings_paths[0]
        with urllib.request.urlopen(endpoint.url + path) as answered:
            told = {**json.load(answered), "path": path}
    found = Vllm().in_force(case, told, ())
    assert found is not None
    assert found.source == f"GET {path}"
    assert found.settings["kv_cache_reuse"] is False


@pytest.mark.parametrize(
    "fault", ["oom", "kv_cache_too_small", "config_error", "nccl", "cuda_error", "cli_drift"]
)
def test_a_fault_of_its_start_is_told_as_vllm_tells_it(
    stage: Any, tmp_path: Path, fault: str
) -> None:
    case = scenario()
    here, build = stage(case, "0.11.0", fault), EngineBuild("vllm", "0.11.0", "0.11.0")
    command = Vllm().serve(case, build, Endpoint(HOST, free_port(HOST), "m"), here)
    ended = subprocess.run(command.argv, capture_output=True, text=True, timeout=60)
    assert ended.returncode in (1, 2)
    assert "TensorRT" not in ended.stderr
    assert diagnose(enumerate(ended.stderr.splitlines(), start=1)).failure == FAULTS[fault].failure


def test_a_taken_port_is_told(stage: Any, tmp_path: Path) -> None:
    case = scenario()
    here, build = stage(case, "0.11.0"), EngineBuild("vllm", "0.11.0", "0.11.0")
    with served(case, "0.11.0", here, tmp_path) as endpoint:
        command = Vllm().serve(case, build, endpoint, here)
        ended = subprocess.run(command.argv, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert diagnose(enumerate(ended.stderr.splitlines(), start=1)).failure == "port_in_use"


def test_a_prompt_that_is_too_long_is_refused_as_vllm_refuses_it(
    stage: Any, tmp_path: Path
) -> None:
    case = scenario()
    here = stage(case, "0.11.0", "request_too_long")
    with served(case, "0.11.0", here, tmp_path) as endpoint:
        body = json.dumps({"model": endpoint.model, "prompt": "1", "max_tokens": 9}).encode()
        asked = urllib.request.Request(endpoint.url + "/v1/completions", body)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(asked)
        said = json.loads(caught.value.read())["message"]
    assert diagnose([(1, said)]).failure == "request_too_long"
