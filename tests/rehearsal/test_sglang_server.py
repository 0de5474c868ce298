"""The stand-in of SGLang's server: what it takes, tells and dies of is what the real one does."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from playing import SHAREGPT, scenarios

from perfgate.core.errors import CliDrift
from perfgate.core.failures import classify
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.engines.program_output import answer
from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.setup import parse_fault, set_up
from perfgate.scenarios.scenario import EngineChoice, EngineSettings, Mtp, Scenario, Source

SGLANG = engine["sglang"]()
NAME = "sglang-eagle"
MODEL = "deepseek-ai/DeepSeek-R1-0528"


def eagle() -> Scenario:
    """The document's line with everything on it."""
    settings = EngineSettings(tp=8, attention_dp=True, torch_compile=True, mtp=Mtp(1))
    case = scenarios()[SHAREGPT]
    return replace(
        case,
        id=NAME,
        source=Source("document.md", "section", engine_version="0.5.3"),
        engine=EngineChoice("sglang", settings),
        floors=(),
    )


@dataclass
class Stage:
    folder: Path
    version: str

    @property
    def build(self) -> EngineBuild:
        return EngineBuild("sglang", self.version, self.version)

    def argv(self, port: int = 8000) -> tuple[str, ...]:
        endpoint = Endpoint("127.0.0.1", port, MODEL)
        return SGLANG.serve(eagle(), self.build, endpoint, Locations()).argv


def staged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "0.5.3", fault: str | None = None
) -> Stage:
    found = parse_fault(fault) if fault else None
    said = f"sglang={version}"
    for name, value in set_up(folder, [eagle()], engine_version=said, fault=found, seed=7).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PERFGATE_SCENARIO", NAME)
    answer.cache_clear()
    return Stage(folder, version)


@contextmanager
def serving(stage: Stage) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        stage.argv(port), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{url}/health", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield url, server
        finally:
            server.terminate()


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as told:
        return json.load(told)


def ended(stage: Stage, port: int = 8000) -> tuple[int, list[str]]:
    done = subprocess.run(stage.argv(port), capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.splitlines()


def test_it_serves_tells_its_settings_and_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(staged(tmp_path, monkeypatch)) as (url, server):
        assert [one["id"] for one in get(f"{url}/v1/models")["data"]] == [MODEL]
        settings = get(f"{url}/get_server_info")
        assert settings["enable_dp_attention"] is False
        assert settings["max_running_requests"] == 48
        assert settings["perfgate_synthetic"] is True
        with pytest.raises(urllib.error.HTTPError):  # a path of later releases
            get(f"{url}/server_info")
        body = {"model": MODEL, "prompt": "1 + 1 =", "max_tokens": 1}
        asked = urllib.request.Request(
            f"{url}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=5) as told:
            assert len(json.load(told)["choices"]) == 1
        server.terminate()
        assert server.wait(30) == 0
        assert server.stdout is not None
        found = SGLANG.in_force(eagle(), SGLANG.build(Locations()), settings, server.stdout)
    assert found is not None
    assert found.limits[0].startswith("max_running_requests 48, 1000 requests in flight")


def test_a_later_release_tells_under_its_own_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(staged(tmp_path, monkeypatch, "0.5.23")) as (url, _):
        settings = get(f"{url}/server_info")
    assert settings["attn_dp_size"] == 1
    assert settings["cuda_graph_config"]["decode"]["max_bs"] == 512
    assert "cuda_graph_max_bs" not in settings


@pytest.mark.parametrize("version", ["0.4.6", "0.5.3", "0.5.23"])
def test_its_python_and_its_help_page_are_those_of_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    stage = staged(tmp_path, monkeypatch, version)
    assert SGLANG.build(Locations()).version == version
    endpoint = Endpoint("127.0.0.1", 8000, MODEL)
    command = SGLANG.serve(eagle(), stage.build, endpoint, Locations())
    assert SGLANG.verify(stage.build, [command], Locations()) == ()
    for wrong in ("--enable-dp-atention", "--enable_dp_attention"):
        drifted = replace(command, argv=(*command.argv, wrong))
        with pytest.raises(CliDrift, match=f"no option {wrong}"):
            SGLANG.verify(stage.build, [drifted], Locations())


def test_an_option_that_is_gone_is_found_before_a_start_with_the_tables_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staged(tmp_path, monkeypatch, fault="cli_drift_help")
    command = SGLANG.serve(eagle(), stage.build, Endpoint("127.0.0.1", 8000, MODEL), Locations())
    with pytest.raises(CliDrift) as caught:
        SGLANG.verify(stage.build, [command], Locations())
    assert "0.4.2.yaml:" in str(caught.value)
    assert "--tp-size" in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        name
        for name, kind in FAULTS.items()
        if kind.place == "engine" and any(lines.engine == "sglang" for lines in kind.lines)
    ],
)
def test_what_it_dies_of_is_classified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    status, log = ended(staged(tmp_path, monkeypatch, fault=fault))
    assert status == 1
    assert classify(log)[0] == FAULTS[fault].failure


def test_an_option_that_only_the_program_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, log = ended(staged(tmp_path, monkeypatch, fault="cli_drift"))
    assert (status, classify(log)[0]) == (2, "cli_drift")


def test_attention_dp_alone_ends_an_older_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staged(tmp_path, monkeypatch, "0.4.6")
    python = os.environ["PERFGATE_PROGRAM_SGLANG"].split()
    argv = [*python, "--model-path", MODEL, "--tp-size", "8", "--enable-dp-attention"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=stage.folder)
    assert done.returncode == 1
    assert "AssertionError: Please set a dp-size > 1" in done.stderr


def test_a_taken_port_ends_it_as_uvicorn_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, log = ended(staged(tmp_path, monkeypatch), taken.getsockname()[1])
    assert (status, classify(log)[0]) == (3, "port_in_use")


def test_a_prompt_that_is_too_long_is_refused_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(staged(tmp_path, monkeypatch, fault="request_too_long")) as (url, _):
        body = json.dumps({"model": MODEL, "prompt": "x", "max_tokens": 8}).encode()
        asked = urllib.request.Request(
            f"{url}/v1/completions", body, {"Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(asked, timeout=5)
        said = caught.value.read().decode()
        caught.value.close()
    assert "Requested token count exceeds the model's maximum context length" in said
