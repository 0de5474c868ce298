"""A server is ready when it is ours, alive and serves the model; clients never run on unwatched."""

import shutil
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from refusals import refused
from small_server import small_server
from tables import each

from perfgate.campaign.serving import (
    class_of_status,
    not_ready,
    require_serving,
    run_to_end,
    wait_until_ready,
)
from perfgate.core.errors import RunError
from perfgate.core.programs.command import Command
from perfgate.engines.base import Endpoint, Engine
from perfgate.launchers.base import Job
from perfgate.launchers.local.launcher import LocalLauncher, free_port
from perfgate.scenarios.scenario import Limits

pytestmark = pytest.mark.slow

LIMITS = Limits(start_s=20, silence_s=2, total_s=20)


class _Endless(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while self.path == Engine.models_path:
                self.wfile.write(b"[" * 65536)


SLEEPS = "import time; time.sleep(60)"


def python(folder, code: str, name: str = "server") -> Job:
    return LocalLauncher().start(Command((sys.executable, "-c", code)), folder, name)


def client(folder, code: str) -> Job:
    return python(folder / "client", code, "client")


@pytest.fixture(autouse=True)
def _dying_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that dies by what made its client fail does so at once here."""
    monkeypatch.setattr("perfgate.campaign.serving._DYING_S", 0.1)


@each("ask", [wait_until_ready, require_serving])
def test_another_servers_health_is_not_taken_for_ours(tmp_path, ask) -> None:
    """Though it is healthy, and names the model that is waited for."""
    with serving(tmp_path / "other") as (_, endpoint), python(tmp_path, SLEEPS) as job:
        assert not job.listens(endpoint.port)
        told = refused(ask, job, Engine, endpoint, 20, error=RunError)
    assert told.failure == "port_in_use"
    assert f"127.0.0.1:{endpoint.port}" in str(told)


@pytest.mark.timeout(60)
def test_an_answer_without_end_is_no_answer() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told = not_ready(Engine, Endpoint("127.0.0.1", server.server_address[1], "m"), 20)
    server.shutdown()
    server.server_close()
    assert "no valid answer yet: is too large" in told


@contextmanager
def serving(folder, **changes: object):
    """A small server of ours that listens."""
    for _ in range(5):  # another process may take the port before the server does
        endpoint = Endpoint("127.0.0.1", free_port("127.0.0.1"), "m")
        with LocalLauncher().start(small_server(endpoint.port, **changes), folder, "server") as job:
            while job.poll() is None and not job.listens(endpoint.port):
                time.sleep(0.02)
            if job.poll() is None:
                yield job, endpoint
                return
    raise AssertionError("every port was taken at once")


@each(
    "changes, told",
    [
        ({}, ""),  # one that is well is let be
        ({"model": "other"}, "['other'], not m"),
        ({"status": 500}, "HTTP Error 500"),
        # Its health and its list of models answer on while its engine hangs.
        ({"choices": []}, "has no choices"),
        ({"hangs_s": 60}, "no completion of one token"),
    ],
)
def test_a_server_that_is_not_well_hangs_with_evidence(tmp_path, changes, told) -> None:
    with serving(tmp_path, **changes) as (job, endpoint):
        if not changes:
            require_serving(job, Engine, endpoint, 20)
            return
        error = refused(require_serving, job, Engine, endpoint, 0.5, error=RunError)
    assert error.failure == "hang"
    assert told in error.message
    assert "unhealthy" in (tmp_path / "server.evidence.txt").read_text()


SHARED = (
    "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 3 has a total capacity of 100.00 GiB of "
    "which 0.50 GiB is free. Process 7 has 39.00 GiB memory in use. Including non-PyTorch memory, "
    "this process has 60.00 GiB memory in use."
)


@each(
    "ask, told",
    [
        (partial(wait_until_ready, start_s=20), "before it was ready"),
        (partial(require_serving, within_s=20), "right after a measurement"),
        (lambda job, *_: run_to_end(job, None, LIMITS), "ended with status 1"),
    ],
)
def test_what_ended_is_told_with_its_first_cause_and_its_step(tmp_path, ask, told) -> None:
    """Somebody else has the GPU: no setting of the engine is at fault."""
    code = f"print({SHARED!r}); print('shutting down', flush=True); raise SystemExit(1)"
    with python(tmp_path, code) as job:
        job.wait()
        endpoint = Endpoint("127.0.0.1", free_port("127.0.0.1"), "m")
        error = refused(ask, job, Engine, endpoint, match=told, error=RunError)
    assert error.failure == "oom"
    assert "CUDA out of memory" in error.evidence[0]
    assert error.hint.startswith("GPU 3 is shared: process 7 had 39.00 GiB")


def test_a_client_is_ended_when_its_server_dies_whatever_status_the_server_had(tmp_path) -> None:
    dies = "import time; time.sleep(0.5)"
    with python(tmp_path, dies) as server, client(tmp_path, SLEEPS) as job:
        assert refused(run_to_end, job, server, LIMITS, error=RunError).failure == "server_died"
        assert job.poll() is not None


WRITES = "import time\nwhile True:\n    open('log', 'a').write('x')\n    time.sleep(0.1)\n"


@each(
    "code, limits, failure",
    [
        # What is written into its folder alone is progress, too.
        (WRITES, replace(LIMITS, silence_s=1, total_s=2), "total_timeout"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", LIMITS, "killed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", LIMITS, "crash"),
        ("raise SystemExit(139)", LIMITS, "crash"),
    ],
)
def test_every_bad_end_of_a_client_has_its_class(tmp_path, code, limits, failure) -> None:
    with python(tmp_path, SLEEPS) as server, client(tmp_path, code) as job:
        assert refused(run_to_end, job, server, limits, error=RunError).failure == failure


def test_a_client_that_fails_without_a_word_where_no_room_is_left(tmp_path, monkeypatch) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    told = "has no room for what it wrote"
    with client(tmp_path, "raise SystemExit(1)") as job:
        error = refused(run_to_end, job, None, LIMITS, match=told, error=RunError)
    assert error.failure == "disk_full"


def test_a_client_that_fails_as_its_server_dies_is_not_the_cause(tmp_path, monkeypatch) -> None:
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
    told = "server ended by itself while client ran"
    with python(tmp_path, dies) as server, client(tmp_path, fails) as job:
        error = refused(run_to_end, job, server, LIMITS, match=told, error=RunError)
    assert error.failure == "oom"


@each(
    ("status", "failure"),
    [(-11, "crash"), (-6, "crash"), (139, "crash"), (134, "crash"), (-9, "killed"), (137, None)]
    + [(-15, "killed"), (0, None), (1, None), (3, None), (None, None)],
)
def test_the_class_of_a_status(status: int | None, failure: str | None) -> None:
    assert class_of_status(status) == failure
