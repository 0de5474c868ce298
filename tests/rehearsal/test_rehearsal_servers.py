"""Mocks of vLLM's and SGLang's servers: what they take, tell and die of is what real ones do."""

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from playing import SHAREGPT, Stage, scenarios, serving, staged
from sessions import tracing

from perfgate.core.errors import CliDrift, InputError
from perfgate.core.failures import diagnose
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, Engine, EngineBuild, OptionsAnswer, engine
from perfgate.engines.effective_settings import require_effective_settings
from perfgate.engines.installed_programs import answer
from perfgate.launchers.local.launcher import free_port
from perfgate.rehearsal.faults import FAULTS
from perfgate.scenarios.scenario import (
    CudaGraphs,
    EngineChoice,
    EngineSettings,
    Mtp,
    Scenario,
    Source,
)

HOST = "127.0.0.1"
NAME = "served"
MODEL = "deepseek-ai/DeepSeek-R1-0528"
VLLM, SGLANG = engine["vllm"](), engine["sglang"]()
RELEASE = {"vllm": "0.11.0", "sglang": "0.5.3"}
EAGLE = {"attention_dp": True, "torch_compile": True, "mtp": Mtp(1)}


def case_of(
    name: str, extra: dict[str, tuple[str | int | float, ...]] | None = None, **settings: Any
) -> Scenario:
    base = scenarios()[SHAREGPT]
    return replace(
        base,
        id=NAME,
        source=Source("document.md", "section", engine_version=RELEASE[name]),
        engine=EngineChoice(name, EngineSettings(tp=8, **settings), extra_args=extra),
        workload=base.workload if name == "sglang" else None,
        accuracy=(),
        floors=(),
    )


@dataclass(frozen=True)
class Played:
    """A release of an engine that is played for one scenario, on a stage."""

    case: Scenario
    version: str
    stage: Stage

    @property
    def engine(self) -> Engine:
        return engine[self.case.engine.name]()

    @property
    def build(self) -> EngineBuild:
        return EngineBuild(self.case.engine.name, self.version, self.version)

    def command(self, port: int = 8000) -> Command:
        return self.engine.serve(self.case, self.build, Endpoint(HOST, port, MODEL), Locations())

    def ended(self, port: int = 8000) -> tuple[int, str]:
        """Status and class of a server that does not start."""
        done = self.stage.run(self.command(port).argv, self.stage.folder, NAME)
        assert "TensorRT" not in done.err
        return done.status, diagnose(enumerate(done.err.splitlines(), start=1)).failure


Play = Callable[..., Played]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """Puts the mocks of a release in place, where the engine finds them."""
    answer.cache_clear()

    def put(case: Scenario, version: str, fault: str | None = None) -> Played:
        stage = staged(tmp_path / "stage", f"{case.engine.name}={version}", fault, [case])
        for name, value in stage.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PERFGATE_SCENARIO", NAME)
        return Played(case, version, stage)

    yield put
    answer.cache_clear()


@contextmanager
def served(played: Played, folder: Path) -> Iterator[str]:
    """Its address, from when it is healthy on; asked to end, it ends well."""
    port = free_port(HOST)
    command = played.command(port)
    environment = {**os.environ, **command.env, **tracing()}
    with serving(command.argv, f"http://{HOST}:{port}", folder, environment) as server:
        yield f"http://{HOST}:{port}"
        server.terminate()
        assert server.wait(30) == 0


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as told:
        return json.load(told)


def complete(url: str, prompt: str) -> Any:
    body = json.dumps({"model": MODEL, "prompt": prompt, "max_tokens": 8}).encode()
    asked = urllib.request.Request(
        f"{url}/v1/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=5) as told:
        return json.load(told)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *(("vllm", one) for one in ("0.6.6.post1", "0.8.5", "0.11.0", "0.32.0", "0.33.0")),
        *(("sglang", one) for one in ("0.4.6", "0.5.3", "0.5.23")),
    ],
)
def test_its_release_is_told_and_what_is_rendered_is_asked_of_its_help(
    play: Play, name: str, version: str
) -> None:
    settings: dict[str, Any] = {"dp": 8, **EAGLE}
    if name == "vllm":
        settings = {"kv_cache_reuse": False, "max_batch_size": 64}
        settings["cuda_graphs"] = CudaGraphs(enabled=False)
    played = play(case_of(name, **settings), version)
    known, command = played.engine, played.command()
    assert known.build(Locations()).version == version
    assert known.verify(played.build, [command], Locations()) == OptionsAnswer()
    # vLLM's parser takes hyphens for underscores.
    for wrong in ("--tensor-paralel", *(["--enable_dp_attention"] if name == "sglang" else [])):
        drifted = replace(command, argv=(*command.argv, wrong))
        with pytest.raises(CliDrift, match=f"no option {wrong}"):
            known.verify(played.build, [drifted], Locations())


def test_a_table_of_another_release_is_found_before_a_start(play: Play) -> None:
    played = play(case_of("vllm", cuda_graphs=CudaGraphs(batch_sizes=(1, 8))), "0.33.0")
    wrong = replace(played, version="0.11.0")
    with pytest.raises(CliDrift) as caught:
        VLLM.verify(wrong.build, [wrong.command()], Locations())
    assert "no option --cuda-graph-sizes" in str(caught.value)
    assert "releases/0.10.0.yaml:" in str(caught.value)


def test_an_option_that_is_gone_is_found_before_a_start_with_the_tables_line(play: Play) -> None:
    played = play(case_of("sglang", **EAGLE), "0.5.3", "cli_drift_help")
    with pytest.raises(CliDrift) as caught:
        SGLANG.verify(played.build, [played.command()], Locations())
    assert "0.4.2.yaml:" in str(caught.value)
    assert "--tp-size" in str(caught.value)


def test_an_extra_option_that_it_lacks_is_named_by_its_field(play: Play) -> None:
    played = play(case_of("vllm", {"vllm": ("--enable-mamba-magic",)}), "0.11.0")
    with pytest.raises(InputError, match=rf"{NAME}\.engine\.extra_args\.vllm\[0\]"):
        VLLM.verify(played.build, [played.command()], Locations())


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
def test_the_log_of_vllm_tells_what_was_asked(
    play: Play, tmp_path: Path, version: str, settings: dict[str, Any]
) -> None:
    case = case_of("vllm", **settings)
    with served(play(case, version), tmp_path) as url:
        assert get(f"{url}/v1/models")["data"][0]["id"] == case.model.name
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{url}/server_info")
        log = (tmp_path / "server.out").read_text().splitlines()
    found = VLLM.effective_settings(case, {}, log)
    assert found is not None
    assert require_effective_settings(case, found)["settings_told_by"] == "its log"
    assert settings.keys() - {"max_batch_size"} <= found.settings.keys()


def test_in_its_development_mode_vllm_tells_its_settings_over_http(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of("vllm", kv_cache_reuse=False)
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    path = VLLM.settings_paths[0]
    with served(play(case, "0.11.0"), tmp_path) as url:
        told = {**get(url + path), "path": path}
    found = VLLM.effective_settings(case, told, ())
    assert found is not None
    assert found.source == f"GET {path}"
    assert found.settings["kv_cache_reuse"] is False


def test_sglang_tells_the_settings_that_it_changed(play: Play, tmp_path: Path) -> None:
    case = case_of("sglang", **EAGLE)
    with served(play(case, "0.5.3"), tmp_path) as url:
        assert [one["id"] for one in get(f"{url}/v1/models")["data"]] == [MODEL]
        settings = get(f"{url}/get_server_info")
        with pytest.raises(urllib.error.HTTPError):  # a path of later releases
            get(f"{url}/server_info")
        assert len(complete(url, "1 + 1 =")["choices"]) == 1
    assert settings["enable_dp_attention"] is False
    assert settings["max_running_requests"] == 48
    assert settings["perfgate_synthetic"] is True
    found = SGLANG.effective_settings(
        case, settings, (tmp_path / "server.out").read_text().splitlines()
    )
    assert found is not None
    assert found.limits[0].startswith("max_running_requests 48, 1000 requests in flight")


def test_a_later_release_of_sglang_tells_under_its_own_names(play: Play, tmp_path: Path) -> None:
    with served(play(case_of("sglang", **EAGLE), "0.5.23"), tmp_path) as url:
        settings = get(f"{url}/server_info")
    assert settings["attn_dp_size"] == 1
    assert settings["cuda_graph_config"]["decode"]["max_bs"] == 512
    assert "cuda_graph_max_bs" not in settings


def test_attention_dp_alone_ends_an_older_release_of_sglang(play: Play, tmp_path: Path) -> None:
    played = play(case_of("sglang", **EAGLE), "0.4.6")
    python = os.environ["PERFGATE_PROGRAM_SGLANG"].split()
    argv = [*python, "--model-path", MODEL, "--tp-size", "8", "--enable-dp-attention"]
    done = played.stage.run(argv, tmp_path, NAME)
    assert done.status == 1
    assert "AssertionError: Please set a dp-size > 1" in done.err


DIED_OF = [
    (name, fault, 1, kind.failure)
    for name in RELEASE
    for fault, kind in FAULTS.items()
    if kind.place == "engine" and any(lines.engine == name for lines in kind.lines)
]


@pytest.mark.parametrize(
    ("name", "fault", "status", "failure"),
    [*DIED_OF, *((name, "cli_drift", 2, "cli_drift") for name in RELEASE)],
)
def test_what_it_dies_of_is_classified(
    play: Play, name: str, fault: str, status: int, failure: str
) -> None:
    assert play(case_of(name), RELEASE[name], fault).ended() == (status, failure)


@pytest.mark.parametrize(("name", "status"), [("vllm", 1), ("sglang", 3)])
def test_a_taken_port_ends_it_with_the_engines_status(play: Play, name: str, status: int) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        played = play(case_of(name), RELEASE[name])
        assert played.ended(taken.getsockname()[1]) == (status, "port_in_use")


@pytest.mark.parametrize("name", RELEASE)
def test_a_prompt_that_is_too_long_is_refused_in_its_own_words(
    play: Play, tmp_path: Path, name: str
) -> None:
    with served(play(case_of(name), RELEASE[name], "request_too_long"), tmp_path) as url:
        with pytest.raises(urllib.error.HTTPError) as caught:
            complete(url, "x")
        said = json.loads(caught.value.read())["message"]
        caught.value.close()
    assert diagnose([(1, said)]).failure == "request_too_long"
