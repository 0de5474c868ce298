"""Programs in containers, with stand-ins for Docker's program and its daemon."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from docker_host import CPU, IMAGE, SITE, DockerHost
from refusals import refused
from tables import each
from witnesses import eventually, kill_at_once, program

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Installation, Locations
from perfgate.core.programs.programs import TRTLLM_BENCH, TRTLLM_SERVE
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.docker import containers
from perfgate.launchers.docker import launcher as docker_launcher
from perfgate.launchers.docker.containers import OWNER, DockerJob
from perfgate.launchers.docker.launcher import DockerLauncher
from perfgate.plan.toolchain import BuildOverride, toolchain_for
from perfgate.scenarios.scenario import Hardware, Launch

pytestmark = pytest.mark.slow

ONE_GPU = replace(CPU, hardware=Hardware("H200", 1, 1))
OTHER = replace(SITE, image="registry/other:2")
LISTENS = (
    "import socket, sys, time\n"
    "one = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "print('ready', flush=True)\n"
    "sum(range(10_000_000))\n"
    "time.sleep(600)\n"
)
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready', flush=True); time.sleep(600)\n"
)


def python(code, *arguments, **more) -> Command:
    return Command((sys.executable, "-c", code, *map(str, arguments)), **more)


class Run:
    """A start, and what it said."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.undo = ExitStack()

    def place(self, launcher=None, scenario=CPU):
        request = PlacementRequest(scenario, self.folder, 60, self.told.append)
        placed = (launcher or DockerLauncher(SITE)).placed(request)
        self.placement = self.undo.enter_context(placed)
        return self.placement

    def start(self, command, **more) -> DockerJob:
        return self.place(**more).start(command, self.folder, "server")

    def stubborn(self, code=STUBBORN) -> DockerJob:
        """A program that runs, and does not want to end."""
        job = self.start(python(code))
        eventually(lambda: is_ready(job))
        return job

    def met(self, command, **more) -> RunError:
        """What a program met, in Docker's words, as a start asks it."""
        self.job = self.start(command, **more)
        self.job.wait(total_s=60)
        return self.placement.explained(RunError("server_died", "server ended by itself"))


@pytest.fixture
def run(tmp_path, host):
    run = Run(tmp_path / "run")
    with run.undo:
        yield run


def is_ready(job) -> bool:
    return "ready" in job.stdout.read_text()


@each("result", [None, "out.txt"])
def test_a_program_ends_with_its_status_and_its_output_is_kept(run, result):
    code = "import sys; print(open('in.txt').read()); print('err', file=sys.stderr); sys.exit(3)"
    job = run.start(python(code, files={"in.txt": "data"}, stdout=result))
    ended = job.wait(total_s=60)
    assert (ended.status, ended.reason) == (3, "exited")
    greeting = "" if result else "== the image greets ==\n"
    assert (run.folder / (result or "server.out")).read_text() == f"{greeting}data\n"
    assert job.stderr.read_text() == "err\n"
    assert "docker" in (run.folder / "server.sh").read_text()


def test_it_gets_its_variables_which_no_command_line_and_no_file_shows(run, host, monkeypatch):
    monkeypatch.setenv("ELSEWHERE", "1")
    secrets = {"HF_TOKEN": "open sesame", "MY_LICENCE": "sesame too"}
    job = run.start(python(LISTENS, 0, env={"A": "x y", **secrets}))
    eventually(lambda: is_ready(job))
    seen = [word for one in psutil.process_iter(["cmdline"]) for word in one.info["cmdline"] or ()]
    files = [file.read_text() for file in run.folder.rglob("*") if file.is_file()]
    assert not any("sesame" in text for text in (*seen, *files))
    (container,) = host.containers
    environment = container.environ()
    assert {"A": "x y", **secrets}.items() <= environment.items()
    assert "ELSEWHERE" not in environment


KILLED = "import os; os.kill(os.getpid(), {})"


@each(
    "code, status, failure",
    [
        *((f"raise SystemExit({status})", status, "server_died") for status in (125, 126, 127)),
        (KILLED.format(11), -11, "server_died"),
        (KILLED.format(9), -9, "server_died"),
        (KILLED.format(9), -9, "oom"),  # its container is full
    ],
)
def test_its_end_is_its_own_also_with_a_status_of_dockers(run, host, code, status, failure):
    if failure == "oom":
        host.trouble("full")
    assert run.met(python(code)).failure == failure
    assert run.job.wait().status == status


def test_one_that_hangs_is_ended_with_evidence_of_what_is_in_the_container(run, host):
    job = run.start(python(LISTENS, 0))
    assert job.wait(silence_s=1.0).reason == "silence"
    evidence = (run.folder / "server.evidence.txt").read_text()
    assert "wrote nothing for 1 s" in evidence
    assert "socket.create_server" in evidence, evidence
    assert host.containers == []


def test_its_sockets_and_cpu_time_are_seen(run):
    port = run.place().free_port()
    job = run.placement.start(python(LISTENS, port), run.folder, "server")
    eventually(lambda: job.listens(port))
    assert not job.listens(1)
    eventually(lambda: job.cpu_seconds() > 0)
    assert any("create_server" in " ".join(one.cmdline()) for one in job.processes())
    assert job.pid not in {one.pid for one in job.processes()}


def test_a_network_of_its_own_has_one_port_here_and_clients_of_the_engine_are_in_it(run, host):
    assert run.place().binds == "127.0.0.1"
    run.undo.close()
    placement = run.place(DockerLauncher(replace(SITE, network="bridge")))
    assert (placement.host, placement.binds) == ("127.0.0.1", "0.0.0.0")  # noqa: S104
    port = placement.free_port()
    server = placement.start(python(LISTENS, port), run.folder, "server")
    eventually(lambda: server.listens(port))
    client = placement.start_engine_client(python("pass"), run.folder, "client")
    assert client.wait(total_s=60).status == 0
    first, second = [one["HostConfig"] for one in host.runs]
    published = [{"HostIp": "127.0.0.1", "HostPort": str(port)}]
    assert first["PortBindings"] == {f"{port}/tcp": published}
    assert second["NetworkMode"] == f"container:{host.runs[0]['name']}"
    assert not second["PortBindings"]
    with pytest.raises(InputError, match="cannot be reached"):
        run.place(DockerLauncher(replace(SITE, network="none"))).free_port()


def test_clients_of_others_stay_outside_and_the_record_says_which_image_it_was(run, host):
    job = run.place().start_client(python("print('here')"), run.folder, "client")
    assert job.wait(total_s=60).status == 0
    assert (job.stdout.read_text(), host.runs) == ("here\n", [])
    assert run.placement.facts["docker"] == {
        "image": IMAGE,
        "id": "sha256:" + "ab" * 32,
        "digests": [f"{IMAGE}@sha256:" + "cd" * 32],
        "server": "99.0",
        "network": "host",
    }


def test_stop_asks_first_and_ends_what_does_not_listen(run, host):
    job = run.stubborn(STUBBORN.replace("signal.SIG_IGN", "lambda *_: exit(7)"))
    ended = job.stop()
    assert (ended.status, ended.reason) == (7, "stopped")
    assert job.stop() == ended
    assert run.stubborn().stop(0.2).reason == "stopped"
    assert host.containers == []


@pytest.mark.parametrize("killed", ["docker run", "wardens"])
def test_the_end_of_what_stands_between_ends_the_container_and_is_told_as_lost(run, host, killed):
    job = run.stubborn()
    docker = psutil.Process(job.pid)
    kill_at_once(*[docker] if killed == "docker run" else docker.parents()[1::-1])
    ended = job.wait(total_s=60)
    assert (ended.status, ended.reason) == (None, "lost")
    assert host.containers == []


def test_a_clean_up_that_is_interrupted_is_left_to_the_guard(run, host, monkeypatch):
    monkeypatch.setattr(docker_launcher, "POLITE_S", 0.2)
    monkeypatch.setattr(docker_launcher, "SETTLE_S", 0.5)
    job = run.stubborn()
    monkeypatch.setattr(docker_launcher.DockerPlacement, "close", lambda _: None)
    monkeypatch.setattr(containers, "of_start", lambda _: signal.raise_signal(signal.SIGINT))
    refused(run.undo.close, error=KeyboardInterrupt)
    assert host.containers == []
    job.stop()


@each(
    "changes, is_gone",
    [
        ({"pid": 2**22 + 1}, True),
        ({"began": 1}, True),
        ({"boot": "before"}, True),
        ({}, False),
        ({"namespace": "pid:[1]", "pid": 2**22 + 1}, False),  # it cannot be seen
    ],
)
def test_the_next_start_removes_those_of_a_gone_perfgate(run, host, monkeypatch, changes, is_gone):
    *marks, label = containers.labels("another")
    owner = json.loads(label.removeprefix(f"{OWNER}="))
    assert owner["pid"] == os.getpid()
    label = f"{OWNER}={json.dumps({**owner, **changes})}"
    with monkeypatch.context() as patch:
        patch.setattr(containers, "labels", lambda _: (*marks, label))
        orphan = run.stubborn()
    run.undo.callback(orphan.stop, 0.0)
    run.place()
    assert len(host.containers) == (0 if is_gone else 1)
    told = [f"removed {orphan.container}, whose perfgate process has ended"]
    assert run.told == (told if is_gone else [])
    orphan.stop(0.0)
    run.told.clear()


@pytest.mark.parametrize(
    ("argv", "scenario", "evidence", "hint"),
    [
        (("no-such-program",), CPU, "executable file not found", "the image lacks the program"),
        (("true",), ONE_GPU, "could not select device driver", "NVIDIA Container Toolkit"),
    ],
)
def test_what_docker_cannot_start_is_told_in_its_words(run, host, argv, scenario, evidence, hint):
    host.trouble("unknown-gpus")
    error = run.met(Command(argv), scenario=scenario)
    assert error.failure == "config_error"
    assert evidence in error.evidence[0]
    assert hint in error.hint


def test_a_daemon_that_does_not_answer_or_no_docker(run, host, monkeypatch):
    host.trouble("hangs")
    monkeypatch.setattr(containers.call, "__defaults__", (0.5,))
    caught = refused(run.place, match="no answer from", error=RunError)
    assert "the Docker daemon does not answer" in caught.hint
    monkeypatch.setenv("PATH", "/nowhere")
    refused(run.place, match="docker is not installed", error=MissingProgram)


def test_an_image_that_is_not_here_is_pulled_and_told_where_it_is_nowhere_or_late(run, host):
    caught = refused(run.place, DockerLauncher(OTHER), match="could not be pulled", error=RunError)
    assert caught.failure == "config_error"
    assert "manifest unknown" in caught.evidence[-1]
    assert "docker.image in site.yaml" in caught.hint
    host.in_registry(OTHER.image, seconds=60)
    with pytest.raises(RunError, match=r"was not pulled in 0\.5 s"):
        run.place(DockerLauncher(replace(OTHER, pull_s=0.5)))
    host.in_registry(OTHER.image)
    run.place(DockerLauncher(OTHER))
    assert run.told[-1] == "pulling registry/other:2"


def test_the_image_is_that_of_the_release_that_is_said_else_of_the_document(run, host):
    scenario = replace(CPU, engine=replace(CPU.engine, name="tensorrt-llm"), container=None)
    host.image(IMAGE.replace("1.0.0", "1.2.3"))
    launcher = DockerLauncher(replace(SITE, image=None))
    locations = launcher.locations(toolchain_for(scenario, Locations(), BuildOverride("1.2.3")))
    assert locations.find(TRTLLM_SERVE) == ("trtllm-serve",)
    found = run.place(launcher, scenario).facts["docker"]["image"]
    assert found == "nvcr.io/nvidia/tensorrt-llm/release:1.2.3"


def test_an_unknown_image_and_ranks_are_refused():
    unknown = replace(CPU, source=replace(CPU.source, engine_version=None))
    with pytest.raises(InputError, match=r"docker\.image in site\.yaml"):
        DockerLauncher(replace(SITE, image=None)).locations(toolchain_for(unknown, Locations()))
    refused(inside, replace(CPU, launch=Launch("mpirun")), match="starts no ranks")


def inside(scenario=CPU) -> Locations:
    return DockerLauncher(SITE).locations(toolchain_for(scenario, Locations()))


def test_a_program_that_only_the_image_has_is_asked_there(host):
    host.image(trtllm_bench='echo "$1: 1.2.3"; echo trouble >&2; exit 2')
    argv = (*inside().find(TRTLLM_BENCH), "--version")
    assert inside().ask(("echo", "here"), 60).stdout == "here\n"
    assert host.runs == [], "others are asked here"
    answer = inside().ask(argv, 60, of_engine=True)
    assert (answer.status, answer.stderr) == (2, "trouble\n")
    assert answer.stdout == "--version: 1.2.3\n"
    assert inside().ask(("no-such-program",), 60, of_engine=True).status == 127


def test_one_that_never_answers_is_ended_and_no_container_is_an_error(host, monkeypatch):
    monkeypatch.setattr(docker_launcher, "STARTED_S", 0.0)
    answer = inside().ask((sys.executable, "-c", STUBBORN), 1.0, of_engine=True)
    assert answer.why.startswith("no answer from")
    assert host.containers == []
    host.trouble("unknown-gpus")
    with pytest.raises(RunError, match="could not select device driver"):
        inside(ONE_GPU).ask(("true",), 60, of_engine=True)


def test_a_folder_in_another_image_is_where_its_programs_are_called():
    other = DockerLauncher(SITE).with_image("registry/other@sha256:" + "cd" * 32)
    where = other.locations(toolchain_for(CPU, Locations()))
    where = replace(where, build=Installation("/opt/old"))
    assert where.find(TRTLLM_BENCH) == ("/opt/old/bin/trtllm-bench",)
    assert where.engine_environment == {}


# No container outlives perfgate, whoever is killed: perfgate, its wardens, the guard, all.

TESTS = Path(__file__).parents[2]
# The first hears no SIGTERM, as an engine that is stuck in a kernel.
PROGRAMS = {"stubborn": "trap '' TERM; while :; do sleep 1; done", "obedient": "exec sleep 600"}


@contextmanager
def perfgate(host, folder: Path, name="stubborn", then="wait"):
    """A process that has a container of that program; dead after the block."""
    host.image(**PROGRAMS)
    argv = program("docker_driver", folder / "run", name, then)
    env = {**os.environ, "PYTHONPATH": f"{TESTS.parent}/src:{TESTS}"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(argv, env=env, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def started(process: subprocess.Popen, host: DockerHost) -> None:
    """Wait until it has its container."""
    assert "started\n" in iter(process.stdout.readline, "")
    eventually(lambda: host.containers)


def guards(process: subprocess.Popen) -> list[psutil.Process]:
    family = psutil.Process(process.pid).children(recursive=True)
    return [one for one in family if "cleanup_guard.py" in " ".join(one.cmdline())]


@pytest.mark.parametrize(
    ("name", "sent"),
    [("stubborn", signal.SIGTERM), ("stubborn", signal.SIGKILL), ("obedient", signal.SIGINT)],
)
def test_perfgate_is_ended(host, tmp_path, name, sent):
    with perfgate(host, tmp_path, name) as process:
        started(process, host)
        process.send_signal(sent)
        eventually(lambda: not host.containers)


def test_a_test_fails(host, tmp_path):
    with perfgate(host, tmp_path, "obedient", then="fail") as process:
        process.wait(60)
        assert process.returncode == 1
        eventually(lambda: not host.containers)


def test_perfgate_is_killed_before_the_container_is_there(host, tmp_path):
    with perfgate(host, tmp_path) as process:
        host.trouble("slow", "0.8")
        eventually(lambda: host.runs)
        assert not host.containers
        process.kill()
        time.sleep(1.0)  # now the daemon makes it, although nobody waits for it
        eventually(lambda: not host.containers)


def test_the_guard_is_killed_and_perfgate_goes_on(host, tmp_path):
    with perfgate(host, tmp_path, "obedient") as process:
        started(process, host)
        killed = guards(process)
        assert killed
        for guard in killed:
            guard.kill()
        assert host.containers
        process.send_signal(signal.SIGINT)
        eventually(lambda: not host.containers)


@pytest.mark.parametrize("killed", ["guard", "everything"])
def test_what_is_left_when_all_are_killed_at_once_the_next_start_removes(host, tmp_path, killed):
    with perfgate(host, tmp_path) as process:
        started(process, host)
        driver = psutil.Process(process.pid)
        others = guards(process) if killed == "guard" else driver.children(recursive=True)
        kill_at_once(driver, *others)
        process.wait()
    assert host.containers, "a container is no child of perfgate"
    told: list[str] = []
    request = PlacementRequest(CPU, tmp_path / "next", 60, told.append)
    with DockerLauncher(SITE).placed(request):
        assert not host.containers
    (line,) = told
    assert line.endswith("whose perfgate process has ended")
