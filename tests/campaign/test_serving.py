"""A server is ready when it is ours, alive and serves the model; clients never run on unwatched."""

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from small_server import small_server
from tables import each

from perfgate.campaign.serving import (
    answers,
    not_ready,
    require_alive,
    require_serving,
    run_to_end,
    wait_until_ready,
)
from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.engines.base import Endpoint, Engine
from perfgate.launchers.base import Job
from perfgate.launchers.local.launcher import LocalLauncher, free_port
from perfgate.scenarios.scenario import Limits

pytestmark = pytest.mark.slow

LIMITS = Limits(start_s=20, silence_s=2, total_s=20)
STRANGER = "stranger"


class _Answer(BaseHTTPRequestHandler):
    """Another server: healthy, and it even names the model that is waited for."""

    def do_GET(self) -> None:
        body = json.dumps({"status": "ok", "data": [{"id": STRANGER}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def stranger(answer: type[BaseHTTPRequestHandler] = _Answer) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _AnyEngine:
    """The two paths that readiness asks an engine for."""

    health_path = Engine.health_path
    models_path = Engine.models_path
    health_within_s = Engine.health_within_s


SLEEPS = "import time; time.sleep(60)"


def python(folder: Path, code: str, name: str = "server") -> Job:
    return LocalLauncher().start(Command((sys.executable, "-c", code)), folder, name)


def client(folder: Path, code: str) -> Job:
    (folder / "client").mkdir(exist_ok=True)
    return python(folder / "client", code, "client")


@pytest.fixture(autouse=True)
def _dying_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that dies by what made its client fail does so within a second here."""
    monkeypatch.setattr("perfgate.campaign.serving._DYING_S", 1.0)


@each("ask", [wait_until_ready, require_serving])
def test_another_servers_health_is_not_taken_for_ours(
    tmp_path: Path, ask: Callable[..., object]
) -> None:
    with stranger() as port, python(tmp_path, SLEEPS) as job:
        assert answers("127.0.0.1", port)
        assert not job.listens(port)
        with pytest.raises(RunError) as caught:
            ask(job, _AnyEngine(), Endpoint("127.0.0.1", port, STRANGER), 20)
    assert caught.value.failure == "port_in_use"
    assert f"127.0.0.1:{port}" in str(caught.value)


class _Endless(_Answer):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while self.path == _AnyEngine.models_path:
                self.wfile.write(b"[" * 65536)


@pytest.mark.timeout(60)
def test_an_answer_without_end_is_no_answer() -> None:
    with stranger(_Endless) as port:
        told = not_ready(_AnyEngine(), Endpoint("127.0.0.1", port, STRANGER), 20)
    assert "no valid answer yet: is too large" in told


@contextmanager
def serving(folder: Path, **changes: object) -> Iterator[tuple[Job, Endpoint]]:
    """A small server of ours that listens."""
    endpoint = Endpoint("127.0.0.1", free_port("127.0.0.1"), "m")
    with LocalLauncher().start(small_server(endpoint.port, **changes), folder, "server") as job:
        while not answers(endpoint.host, endpoint.port):
            assert job.poll() is None
        yield job, endpoint


@each(
    ("changes", "told"),
    [
        ({}, ""),  # one that is well is let be
        ({"model": "other"}, "['other'], not m"),
        ({"status": 500}, "HTTP Error 500"),
        # Its health and its list of models answer on while its engine hangs.
        ({"choices": []}, "has no choices"),
        ({"hangs_s": 60}, "no completion of one token"),
    ],
)
def test_a_server_that_is_not_well_after_a_measurement_hangs_with_evidence(
    tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    with serving(tmp_path, **changes) as (job, endpoint):
        if not changes:
            require_serving(job, _AnyEngine(), endpoint, 20)
            return
        with pytest.raises(RunError) as caught:
            require_serving(job, _AnyEngine(), endpoint, 0.5)
    assert caught.value.failure == "hang"
    assert told in caught.value.message
    assert "unhealthy" in (tmp_path / "server.evidence.txt").read_text()


@each(
    ("ask", "told"),
    [(wait_until_ready, "before it was ready"), (require_serving, "right after a measurement")],
)
def test_a_server_that_ended_is_told_with_its_first_cause(
    tmp_path: Path, ask: Callable[..., object], told: str
) -> None:
    code = "print('std::bad_alloc'); print('shutting down'); raise SystemExit(0)"
    with python(tmp_path, code) as job:
        job.wait()
        with pytest.raises(RunError, match=told) as caught:
            ask(job, _AnyEngine(), Endpoint("127.0.0.1", free_port("127.0.0.1"), "m"), 20)
    assert (caught.value.failure, caught.value.evidence) == ("oom", ("std::bad_alloc",))


def test_when_a_client_hangs_it_is_written_down_what_its_server_did(tmp_path: Path) -> None:
    with (
        python(tmp_path, SLEEPS) as server,
        client(tmp_path, SLEEPS) as measuring,
        pytest.raises(RunError) as caught,
    ):
        run_to_end(measuring, server, replace(LIMITS, silence_s=1))
    assert caught.value.failure == "hang"
    told = (tmp_path / "server.evidence.txt").read_text()
    assert "wrote nothing for 1 s" in told
    assert str(server.pid) in told


def test_a_client_is_ended_when_its_server_dies_whatever_status_the_server_had(
    tmp_path: Path,
) -> None:
    with (
        python(tmp_path, "import time; time.sleep(0.5)") as server,
        client(tmp_path, SLEEPS) as measuring,
    ):
        with pytest.raises(RunError) as caught:
            run_to_end(measuring, server, LIMITS)
        assert measuring.poll() is not None
    assert caught.value.failure == "server_died"


WRITES = "import time\nwhile True:\n    open('log', 'a').write('x')\n    time.sleep(0.1)\n"


@each(
    ("code", "limits", "failure"),
    [
        # What is written into its folder alone is progress, too.
        (WRITES, replace(LIMITS, silence_s=1, total_s=2), "total_timeout"),
        ("raise SystemExit(3)", LIMITS, "client_failed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", LIMITS, "killed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", LIMITS, "crash"),
        ("raise SystemExit(139)", LIMITS, "crash"),
    ],
)
def test_every_bad_end_of_a_client_has_its_class(
    tmp_path: Path, code: str, limits: Limits, failure: str
) -> None:
    with (
        python(tmp_path, SLEEPS) as server,
        client(tmp_path, code) as measuring,
        pytest.raises(RunError) as caught,
    ):
        run_to_end(measuring, server, limits)
    assert caught.value.failure == failure


SHARED = (
    "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 3 has a total capacity of 100.00 GiB of "
    "which 0.50 GiB is free. Process 7 has 39.00 GiB memory in use. Including non-PyTorch memory, "
    "this process has 60.00 GiB memory in use."
)


@each(
    "told",
    [
        lambda job: require_alive(job, "before it was ready"),
        lambda job: run_to_end(job, None, LIMITS),
    ],
    ids=["server", "client"],
)
def test_the_next_step_is_the_one_that_the_log_calls_for(
    tmp_path: Path, told: Callable[[Job], object]
) -> None:
    """Somebody else has the GPU: no setting of the engine is at fault."""
    with python(tmp_path, f"print({SHARED!r}, flush=True); raise SystemExit(1)") as job:
        assert job.until(20) is not None
        with pytest.raises(RunError) as caught:
            told(job)
    assert caught.value.failure == "oom"
    assert caught.value.hint.startswith("GPU 3 is shared: process 7 had 39.00 GiB")


def test_a_client_that_fails_without_a_word_where_no_room_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with (
        client(tmp_path, "raise SystemExit(1)") as measuring,
        pytest.raises(RunError, match="has no room for what it wrote") as caught,
    ):
        run_to_end(measuring, None, LIMITS)
    assert caught.value.failure == "disk_full"


def test_a_client_that_fails_as_its_server_dies_is_not_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfgate.campaign.serving._DYING_S", 9.0)
    ended = tmp_path / "ended"
    dies = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({str(ended)!r}).exists(): time.sleep(0.01)\n"
        "print('std::bad_alloc', flush=True)\n"
        "time.sleep(0.5)\n"
        "sys.exit(1)\n"
    )
    fails = f"import pathlib; pathlib.Path({str(ended)!r}).touch(); raise SystemExit(1)"
    with (
        python(tmp_path, dies) as server,
        client(tmp_path, fails) as measuring,
        pytest.raises(RunError, match="server ended by itself while client ran") as caught,
    ):
        run_to_end(measuring, server, LIMITS)
    assert caught.value.failure == "oom"
