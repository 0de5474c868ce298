"""The stand-in of SGLang's server: what it takes, tells and dies of is what the real one does."""

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from playing import SHAREGPT, scenarios, serving, staged

from perfgate.core.command import Command
from perfgate.core.errors import CliDrift
from perfgate.core.failures import diagnose
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.engines.installed_programs import answer
from perfgate.launchers.local.launcher import free_port
from perfgate.rehearsal.faults import FAULTS
from perfgate.scenarios.scenario import EngineChoice, EngineSettings, Mtp, Scenario, Source

SGLANG = engine["sglang"]()
HOST = "127.0.0.1"
NAME = "sglang-eagle"
MODEL = "deepseek-ai/DeepSeek-R1-0528"


def eagle(dp: int | None = None) -> Scenario:
    """The document's line with everything on it."""
    settings = EngineSettings(tp=8, dp=dp, attention_dp=True, torch_compile=True, mtp=Mtp(1))
    case = scenarios()[SHAREGPT]
    return replace(
        case,
        id=NAME,
        source=Source("document.md", "section", engine_version="0.5.3"),
        engine=EngineChoice("sglang", settings),
        floors=(),
    )


@dataclass
class Played:
    """A release of SGLang that is played."""

    version: str

    @property
    def build(self) -> EngineBuild:
        return EngineBuild("sglang", self.version, self.version)

    def command(self, port: int = 8000, dp: int | None = None) -> Command:
        return SGLANG.serve(eagle(dp), self.build, Endpoint(HOST, port, MODEL), Locations())

    def ended(self, port: int = 8000) -> tuple[int, str]:
        """Status and class of a server that does not start."""
        argv = self.command(port).argv
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        return done.returncode, diagnose(enumerate(done.stderr.splitlines(), start=1)).failure


Play = Callable[..., Played]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    def put(version: str = "0.5.3", fault: str | None = None) -> Played:
        stage = staged(tmp_path / "stage", f"sglang={version}", fault, [eagle()])
        for name, value in stage.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PERFGATE_SCENARIO", NAME)
        answer.cache_clear()
        return Played(version)

    return put


@contextmanager
def served(played: Played, folder: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    port = free_port(HOST)
    url = f"http://{HOST}:{port}"
    with serving(played.command(port).argv, url, folder, os.environ) as server:
        yield url, server


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


def test_it_serves_tells_its_settings_and_ends_well(play: Play, tmp_path: Path) -> None:
    with served(play(), tmp_path) as (url, server):
        assert [one["id"] for one in get(f"{url}/v1/models")["data"]] == [MODEL]
        settings = get(f"{url}/get_server_info")
        assert settings["enable_dp_attention"] is False
        assert settings["max_running_requests"] == 48
        assert settings["perfgate_synthetic"] is True
        with pytest.raises(urllib.error.HTTPError):  # a path of later releases
            get(f"{url}/server_info")
        assert len(complete(url, "1 + 1 =")["choices"]) == 1
        server.terminate()
        assert server.wait(30) == 0
    log = (tmp_path / "server.out").read_text().splitlines()
    found = SGLANG.in_force(eagle(), settings, log)
    assert found is not None
    assert found.limits[0].startswith("max_running_requests 48, 1000 requests in flight")


def test_a_later_release_tells_under_its_own_names(play: Play, tmp_path: Path) -> None:
    with served(play("0.5.23"), tmp_path) as (url, _):
        settings = get(f"{url}/server_info")
    assert settings["attn_dp_size"] == 1
    assert settings["cuda_graph_config"]["decode"]["max_bs"] == 512
    assert "cuda_graph_max_bs" not in settings


@pytest.mark.parametrize("version", ["0.4.6", "0.5.3", "0.5.23"])
def test_its_python_and_its_help_page_are_those_of_the_release(play: Play, version: str) -> None:
    played = play(version)
    build, command = played.build, played.command(dp=8)
    assert SGLANG.build(Locations()).version == version
    assert SGLANG.verify(build, [command], Locations()) == ()
    for wrong in ("--enable-dp-atention", "--enable_dp_attention"):
        drifted = replace(command, argv=(*command.argv, wrong))
        with pytest.raises(CliDrift, match=f"no option {wrong}"):
            SGLANG.verify(build, [drifted], Locations())


def test_an_option_that_is_gone_is_found_before_a_start_with_the_tables_line(play: Play) -> None:
    played = play(fault="cli_drift_help")
    with pytest.raises(CliDrift) as caught:
        SGLANG.verify(played.build, [played.command()], Locations())
    assert "0.4.2.yaml:" in str(caught.value)
    assert "--tp-size" in str(caught.value)


DIED_OF = [
    (name, 1, kind.failure)
    for name, kind in FAULTS.items()
    if kind.place == "engine" and any(lines.engine == "sglang" for lines in kind.lines)
]


@pytest.mark.parametrize(("fault", "status", "failure"), [*DIED_OF, ("cli_drift", 2, "cli_drift")])
def test_what_it_dies_of_is_classified(play: Play, fault: str, status: int, failure: str) -> None:
    assert play(fault=fault).ended() == (status, failure)


def test_attention_dp_alone_ends_an_older_release(play: Play, tmp_path: Path) -> None:
    play("0.4.6")
    python = os.environ["PERFGATE_PROGRAM_SGLANG"].split()
    argv = [*python, "--model-path", MODEL, "--tp-size", "8", "--enable-dp-attention"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 1
    assert "AssertionError: Please set a dp-size > 1" in done.stderr


def test_a_taken_port_ends_it_as_uvicorn_does(play: Play) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        assert play().ended(taken.getsockname()[1]) == (3, "port_in_use")


def test_a_prompt_that_is_too_long_is_refused_in_its_own_words(play: Play, tmp_path: Path) -> None:
    with served(play(fault="request_too_long"), tmp_path) as (url, _):
        with pytest.raises(urllib.error.HTTPError) as caught:
            complete(url, "x")
        said = caught.value.read().decode()
        caught.value.close()
    assert "Requested token count exceeds the model's maximum context length" in said
