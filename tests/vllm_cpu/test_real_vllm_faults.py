"""Faults of a real vLLM through perfgate's own road: each has its class, and nothing is left.

Each test starts a server, which takes half a minute on two quiet cores: `make vllm-test` runs them.
"""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from real_engine import MODEL, MODELS, OF_ENGINE, Running, under_load
from real_vllm import PROGRAM, VLLM, checkout

from perfgate.campaign.fresh_start import _TRIES_OF_PORTS
from perfgate.core.programs.programs import interpreter_of

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("vllm")]


@pytest.fixture(scope="module")
def vllm() -> None:
    VLLM.require()


@pytest.mark.parametrize(
    ("title", "number", "failure"),
    [
        pytest.param("VLLM::EngineCore", signal.SIGKILL, "killed", id="engine-core-killed"),
        # The server ends with status 0 then, as if all were well; and so it does here below.
        pytest.param("VLLM::Worker", signal.SIGKILL, "killed", id="worker-killed"),
        pytest.param("vllm serve", signal.SIGTERM, "server_died", id="asked-to-end-by-another"),
        # vLLM's EngineCore and Worker live on: perfgate ends them.
        pytest.param("vllm serve", signal.SIGKILL, "killed", id="parent-killed"),
    ],
)
def test_a_server_that_ends_under_load(
    title: str, number: int, failure: str, tmp_path: Path
) -> None:
    error = checkout(tmp_path / "checkout").run(act=under_load(title, number)).error()
    assert error["error_class"] == failure
    assert "server" in error["message"]


class _Healthy(BaseHTTPRequestHandler):
    """Another server, as healthy as can be: it names the model, and gives a token."""

    def do_GET(self) -> None:
        body = b'{"object": "list", "data": [{"id": "%s"}], "choices": [{}]}' % MODEL.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def healthy_stranger(port: int) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", port), _Healthy)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent_stranger(port: int) -> Iterator[None]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        yield


@pytest.mark.parametrize("stranger", [healthy_stranger, silent_stranger])
def test_ports_that_other_programs_have(stranger: Callable[[int], Any], tmp_path: Path) -> None:
    taken: set[int] = set()  # perfgate takes another one, a few times
    with ExitStack() as stack:

        def act(running: Running) -> bool:
            port = running.port()
            if port is not None and port not in taken:  # vLLM opens it after its imports
                stack.enter_context(stranger(port))
                taken.add(port)
            return len(taken) == _TRIES_OF_PORTS

        session = checkout(tmp_path / "checkout").run(act=act)
    assert session.error()["error_class"] == "port_in_use"
    assert session.output.count("was taken before the server had it") == _TRIES_OF_PORTS - 1


def test_weights_that_are_cut_short(tmp_path: Path) -> None:
    whole = Path(os.environ[MODELS]) / MODEL
    broken = tmp_path / "models" / MODEL
    shutil.copytree(whole, broken, ignore=shutil.ignore_patterns("*.safetensors"))
    with (whole / "model.safetensors").open("rb") as weights:
        (broken / "model.safetensors").write_bytes(weights.read(100_000_000))
    session = checkout(tmp_path / "checkout").run(environment={MODELS: str(broken.parent)})
    error = session.error()
    assert error["error_class"] == "model_file"
    assert any("SafetensorError" in line for line in error["evidence"]) or MODEL in error["message"]


def test_a_kv_cache_that_holds_no_request(tmp_path: Path) -> None:
    def change(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
        defaults["engine"]["settings"]["max_seq_len"] = 8192
        defaults["engine"]["extra_args"] = {"vllm": ["--kv-cache-memory-bytes", "50M"]}
        del defaults["environment"]["VLLM_CPU_KVCACHE_SPACE"]  # which wins over the option

    error = checkout(tmp_path / "checkout", change).run().error()
    assert error["error_class"] == "kv_cache_too_small"
    assert "larger than the available KV cache memory" in "".join(error["evidence"])


@pytest.mark.parametrize("client", ["bench", "serve"])
def test_a_request_that_is_longer_than_the_model(client: str, tmp_path: Path) -> None:
    """Only the server's answer says why; its log leaves it out, and so does one of the clients."""

    def change(scenario: dict[str, Any], defaults: dict[str, Any]) -> None:
        del defaults["engine"]["settings"]["max_seq_len"]  # then the model's own, 8192
        scenario["workload"].update(isl=9000, concurrency=[4])
        scenario.pop("accuracy", None)

    error = checkout(tmp_path / "checkout", change, name=client).run().error()
    assert error["error_class"] == "client_failed"
    if client == "bench":
        assert "Bad Request" in "".join(error["evidence"])


def test_a_prefix_cache_that_nobody_asked_for(tmp_path: Path) -> None:
    real = Path(os.environ[PROGRAM])
    program = tmp_path / "vllm"
    program.write_text(
        f"#!{interpreter_of(str(real))}\n"
        "import os, sys\n"
        "more = ['--enable-prefix-caching'] if sys.argv[1] == 'serve' else []\n"
        f"os.execv({str(real)!r}, [{str(real)!r}, *sys.argv[1:], *more])\n"
    )
    program.chmod(0o755)
    session = checkout(tmp_path / "checkout").run(environment={PROGRAM: str(program)})
    error = session.error()
    assert error["error_class"] == "not_in_force"
    assert "kv_cache_reuse" in error["message"]
    assert not any(session.run.rglob("client.out")), "it was loaded"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_session_that_is_ended_leaves_nothing_and_blames_nobody(
    number: signal.Signals, tmp_path: Path
) -> None:
    def act(running: Running) -> bool:
        if running.is_loaded():
            running.process.send_signal(number)
            return True
        return False

    session = checkout(tmp_path / "checkout").run(act=act)
    assert session.left() == []
    assert session.status not in (0, OF_ENGINE)
    assert [one for one in session.of("verdict") if one["error"] is not None] == []
