"""Programs in containers, with stand-ins for Docker's program and its daemon."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from building import SCENARIO
from docker_host import IMAGE, DockerHost, docker_host
from witnesses import eventually, kill_at_once

from perfgate.core.command import Command
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Installation, Locations
from perfgate.core.programs import TRTLLM_BENCH, TRTLLM_SERVE
from perfgate.launchers.base import Placement, PlacementRequest
from perfgate.launchers.docker import containers
from perfgate.launchers.docker import launcher as docker_launcher
from perfgate.launchers.docker.containers import OWNER, DockerJob
from perfgate.launchers.docker.launcher import DockerLauncher
from perfgate.launchers.site import DockerSite
from perfgate.scenarios.scenario import Hardware, Launch, Scenario

pytestmark = pytest.mark.slow

CPU = replace(SCENARIO, hardware=Hardware("none", 0, 1))
ONE_GPU = replace(CPU, hardware=Hardware("H200", 1, 1))
SITE = DockerSite(image=IMAGE, user=None, cache=None, pass_on=())
LISTENS = (
    "import socket, sys, time\n"
    "one = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "print('ready', flush=True)\n"
    "sum(range(10_000_000))\n"
    "time.sleep(600)\n"
)
STUBBORN = (
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready', flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DockerHost]:
    """A machine with Docker: its daemon is played, and its program where it is not installed."""
    docker_launcher._have.cache_clear()
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    for name in ("CUDA_VISIBLE_DEVICES", "TRT_LLM_VERSION", "TRT_LLM_GIT_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    with docker_host(real=shutil.which("docker") is not None) as host:
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)
        host.image()
        yield host
        assert host.containers == []


def python(code: str, *arguments: object, **more: Any) -> Command:
    return Command((sys.executable, "-c", code, *map(str, arguments)), **more)


class Run:
    """A start, and what it said."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "run"
        self.told: list[str] = []
        self.undo = ExitStack()

    def place(self, site: DockerSite = SITE, scenario: Scenario = CPU) -> Placement:
        request = PlacementRequest(scenario, self.folder, 60, self.told.append)
        self.placement = self.undo.enter_context(DockerLauncher(site).placed(request))
        return self.placement

    def start(self, command: Command, **more: Any) -> DockerJob:
        job = self.place(**more).start(command, self.folder, "server")
        assert isinstance(job, DockerJob)
        return job

    def stubborn(self, code: str = STUBBORN) -> DockerJob:
        """A program that runs, and does not want to end."""
        job = self.start(python(code))
        eventually(lambda: is_ready(job))
        return job

    def met(self, command: Command, **more: Any) -> RunError:
        """What a program met, in Docker's words, as a start asks it."""
        self.job = self.start(command, **more)
        self.job.wait(total_s=60)
        return self.placement.explained(RunError("server_died", "server ended by itself"))


@pytest.fixture
def run(tmp_path: Path, host: DockerHost) -> Iterator[Run]:
    run = Run(tmp_path)
    with run.undo:
        yield run


def is_ready(job: DockerJob) -> bool:
    return "ready" in job.stdout.read_text()


class TestProgram:
    @pytest.mark.parametrize("result", [None, "out.txt"])
    def test_ends_with_its_status_and_its_output_is_kept(
        self, run: Run, result: str | None
    ) -> None:
        code = (
            "import sys; print(open('in.txt').read()); print('err', file=sys.stderr); sys.exit(3)"
        )
        job = run.start(python(code, files={"in.txt": "data"}, stdout=result))
        ended = job.wait(total_s=60)
        assert (ended.status, ended.reason) == (3, "exited")
        greeting = "" if result else "== the image greets ==\n"
        assert (run.folder / (result or "server.out")).read_text() == f"{greeting}data\n"
        assert job.stderr.read_text() == "err\n"
        assert "docker" in (run.folder / "server.sh").read_text()

    def test_gets_its_variables_which_no_command_line_and_no_file_shows(
        self, run: Run, host: DockerHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ELSEWHERE", "1")
        secrets = {"HF_TOKEN": "open sesame", "MY_LICENCE": "sesame too"}
        job = run.start(python(LISTENS, 0, env={"A": "x y", **secrets}))
        eventually(lambda: is_ready(job))
        seen = [word for one in psutil.process_iter() for word in _argv(one)]
        assert not any("sesame" in word for word in seen)
        files = [file for file in run.folder.rglob("*") if file.is_file()]
        assert not any("sesame" in file.read_text() for file in files)
        (container,) = host.containers
        environment = container.environ()
        assert {"A": "x y", **secrets}.items() <= environment.items()
        assert "ELSEWHERE" not in environment

    @pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGSEGV, -11)])
    def test_killed_by_a_signal_it_is_told_as_such(
        self, run: Run, number: signal.Signals, status: int
    ) -> None:
        job = run.start(python(f"import os; os.kill(os.getpid(), {int(number)})"))
        assert job.wait(total_s=60).status == status

    def test_that_hangs_is_ended_with_evidence_of_what_is_in_the_container(
        self, run: Run, host: DockerHost
    ) -> None:
        job = run.start(python(LISTENS, 0))
        assert job.wait(silence_s=1.0).reason == "silence"
        evidence = (run.folder / "server.evidence.txt").read_text()
        assert "wrote nothing for 1 s" in evidence
        assert "socket.create_server" in evidence, evidence
        assert host.containers == []

    def test_its_sockets_and_cpu_time_are_seen(self, run: Run) -> None:
        port = run.place().free_port()
        job = run.placement.start(python(LISTENS, port), run.folder, "server")
        eventually(lambda: job.listens(port))
        assert not job.listens(1)
        eventually(lambda: job.cpu_seconds() > 0)
        assert any("create_server" in " ".join(_argv(one)) for one in job.processes())
        assert job.pid not in {one.pid for one in job.processes()}


class TestNetwork:
    def test_of_its_own_has_one_port_here_and_clients_of_the_engine_are_in_it(
        self, run: Run, host: DockerHost
    ) -> None:
        assert run.place().binds == "127.0.0.1"
        run.undo.close()
        placement = run.place(replace(SITE, network="bridge"))
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

    def test_none_is_refused(self, run: Run) -> None:
        with pytest.raises(InputError, match="cannot be reached"):
            run.place(replace(SITE, network="none")).free_port()


def test_clients_of_others_stay_outside(run: Run, host: DockerHost) -> None:
    job = run.place().start_client(python("print('here')"), run.folder, "client")
    assert job.wait(total_s=60).status == 0
    assert (job.stdout.read_text(), host.runs) == ("here\n", [])


def test_the_record_says_which_image_it_was(run: Run) -> None:
    found = run.place().facts["docker"]
    assert isinstance(found, dict)
    assert found["image"] == IMAGE
    assert found["id"] == "sha256:" + "ab" * 32
    assert found["digests"] == [f"{IMAGE}@sha256:" + "cd" * 32]
    assert (found["server"], found["network"]) == ("99.0", "host")


class TestEnd:
    def test_stop_asks_first(self, run: Run) -> None:
        job = run.stubborn(STUBBORN.replace("signal.SIG_IGN", "lambda *_: exit(7)"))
        ended = job.stop()
        assert (ended.status, ended.reason) == (7, "stopped")
        assert job.stop() == ended

    def test_stop_ends_what_does_not_listen(self, run: Run, host: DockerHost) -> None:
        assert run.stubborn().stop(0.2).reason == "stopped"
        assert host.containers == []

    @pytest.mark.parametrize("killed", ["docker run", "wardens"])
    def test_of_what_stands_between_ends_the_container_and_is_told_as_lost(
        self, run: Run, host: DockerHost, killed: str
    ) -> None:
        job = run.stubborn()
        docker = psutil.Process(job.pid)
        kill_at_once(*[docker] if killed == "docker run" else docker.parents()[1::-1])
        ended = job.wait(total_s=60)
        assert (ended.status, ended.reason) == (None, "lost")
        assert host.containers == []

    def test_that_is_interrupted_is_left_to_the_guard(
        self, run: Run, host: DockerHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(docker_launcher, "POLITE_S", 0.2)
        monkeypatch.setattr(docker_launcher, "SETTLE_S", 0.5)
        job = run.stubborn()
        monkeypatch.setattr(docker_launcher.DockerPlacement, "close", lambda _: None)
        monkeypatch.setattr(containers, "of_start", lambda _: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            run.undo.close()
        assert host.containers == []
        job.stop()


class TestOrphans:
    def orphan(self, run: Run, **changes: Any) -> str:
        """A container of another start, whose label names another owner."""
        *marks, label = containers.labels("another")
        owner = json.loads(label.removeprefix(f"{OWNER}="))
        assert owner["pid"] == os.getpid()
        label = f"{OWNER}={json.dumps({**owner, **changes})}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(containers, "labels", lambda _: (*marks, label))
            job = run.stubborn()
        run.undo.callback(job.stop, 0.0)
        return job.container

    @pytest.mark.parametrize(
        ("changes", "is_gone"),
        [
            ({"pid": 2**22 + 1}, True),
            ({"began": 1}, True),
            ({"boot": "before"}, True),
            ({}, False),
            ({"namespace": "pid:[1]", "pid": 2**22 + 1}, False),  # it cannot be seen
        ],
    )
    def test_of_a_perfgate_that_is_gone_are_removed_at_the_next_start(
        self, run: Run, host: DockerHost, changes: dict[str, Any], is_gone: bool
    ) -> None:
        name = self.orphan(run, **changes)
        run.place()
        assert len(host.containers) == (0 if is_gone else 1)
        told = [f"removed {name}, whose perfgate process has ended"]
        assert run.told == (told if is_gone else [])


class TestTrouble:
    @pytest.mark.parametrize(
        ("argv", "evidence", "hint"),
        [
            (("no-such-program",), "executable file not found", "the image lacks the program"),
            (("true",), "could not select device driver", "NVIDIA Container Toolkit"),
        ],
    )
    def test_what_docker_cannot_start_is_told_in_its_words(
        self, run: Run, host: DockerHost, argv: tuple[str, ...], evidence: str, hint: str
    ) -> None:
        host.trouble("unknown-gpus")
        error = run.met(Command(argv), scenario=ONE_GPU if argv == ("true",) else CPU)
        assert error.failure == "config_error"
        assert evidence in error.evidence[0]
        assert hint in error.hint

    @pytest.mark.parametrize("status", [125, 126, 127])
    def test_a_program_may_end_with_dockers_statuses(self, run: Run, status: int) -> None:
        assert run.met(python(f"raise SystemExit({status})")).failure == "server_died"
        assert run.job.wait().status == status

    @pytest.mark.parametrize(("full", "failure"), [(True, "oom"), (False, "server_died")])
    def test_a_container_without_memory(
        self, run: Run, host: DockerHost, full: bool, failure: str
    ) -> None:
        if full:
            host.trouble("full")
        assert run.met(python("import os; os.kill(os.getpid(), 9)")).failure == failure

    def test_a_daemon_that_does_not_answer(
        self, run: Run, host: DockerHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host.trouble("hangs")
        monkeypatch.setattr("perfgate.launchers.docker.containers.CALL_S", 0.5)
        monkeypatch.setattr("perfgate.launchers.docker.containers.call.__defaults__", (0.5,))
        with pytest.raises(RunError, match="no answer from") as caught:
            run.place()
        assert "the Docker daemon does not answer" in caught.value.hint

    def test_no_docker(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(MissingProgram, match="docker is not installed"):
            run.place()


class TestImage:
    OTHER = replace(SITE, image="registry/other:2")

    def test_that_is_not_here_is_pulled(self, run: Run, host: DockerHost) -> None:
        host.in_registry("registry/other:2")
        run.place(self.OTHER)
        assert "pulling registry/other:2" in run.told

    def test_that_is_nowhere_or_takes_too_long_is_told(self, run: Run, host: DockerHost) -> None:
        with pytest.raises(RunError, match="could not be pulled") as caught:
            run.place(self.OTHER)
        assert caught.value.failure == "config_error"
        assert "manifest unknown" in caught.value.evidence[-1]
        assert "docker.image in site.yaml" in caught.value.hint
        host.in_registry("registry/other:2", seconds=60)
        with pytest.raises(RunError, match=r"was not pulled in 0\.5 s"):
            run.place(replace(self.OTHER, pull_s=0.5))

    def test_is_that_of_the_release_that_is_said_else_of_the_document(
        self, run: Run, host: DockerHost
    ) -> None:
        engine = replace(CPU.engine, name="tensorrt-llm")
        scenario = replace(CPU, engine=engine, container=None)
        site = replace(SITE, image=None)
        host.image(IMAGE.replace("1.0.0", "1.2.3"))
        launcher = DockerLauncher(site)
        locations = launcher.locations(Locations(), scenario, "1.2.3")
        assert locations.find(TRTLLM_SERVE) == ("trtllm-serve",)
        request = PlacementRequest(scenario, run.folder, 60, run.told.append)
        with launcher.placed(request) as placement:
            found = placement.facts["docker"]
        assert isinstance(found, dict)
        assert found["image"] == "nvcr.io/nvidia/tensorrt-llm/release:1.2.3"

    def test_must_be_named_where_the_release_is_unknown_and_starts_no_ranks(self) -> None:
        unknown = replace(CPU, source=replace(CPU.source, engine_version=None))
        with pytest.raises(InputError, match=r"docker\.image in site\.yaml"):
            DockerLauncher(replace(SITE, image=None)).locations(Locations(), unknown, None)
        with pytest.raises(InputError, match="starts no ranks"):
            DockerLauncher(SITE).locations(Locations(), replace(CPU, launch=Launch("mpirun")), None)


class TestInside:
    def inside(self, scenario: Scenario = CPU) -> Locations:
        return DockerLauncher(SITE).locations(Locations(), scenario, None)

    def test_a_program_that_only_the_image_has_is_asked_there(self, host: DockerHost) -> None:
        host.image(trtllm_bench='echo "$1: 1.2.3"; echo trouble >&2; exit 2')
        locations = self.inside()
        argv = (*locations.find(TRTLLM_BENCH), "--version")
        answer = locations.ask(argv, 60, of_engine=True)
        assert (answer.status, answer.stderr) == (2, "trouble\n")
        assert answer.stdout == "--version: 1.2.3\n"

    def test_others_are_asked_here_and_one_that_it_lacks_is_an_answer(
        self, host: DockerHost
    ) -> None:
        assert self.inside().ask(("echo", "here"), 60).stdout == "here\n"
        assert host.runs == []
        answer = self.inside().ask(("no-such-program",), 60, of_engine=True)
        assert answer.status == 127

    def test_one_that_never_answers_is_ended(
        self, host: DockerHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(docker_launcher, "STARTED_S", 0.0)
        answer = self.inside().ask((sys.executable, "-c", STUBBORN), 1.0, of_engine=True)
        assert answer.why.startswith("no answer from")
        assert host.containers == []

    def test_no_container_is_an_error(self, host: DockerHost) -> None:
        host.trouble("unknown-gpus")
        with pytest.raises(RunError, match="could not select device driver"):
            self.inside(ONE_GPU).ask(("true",), 60, of_engine=True)


def test_a_folder_in_another_image_is_where_its_programs_are_called() -> None:
    other = DockerLauncher(SITE).with_image("registry/other@sha256:" + "cd" * 32)
    where = replace(other.locations(Locations(), CPU, None), build=Installation("/opt/old"))
    assert where.find(TRTLLM_BENCH) == ("/opt/old/bin/trtllm-bench",)
    assert where.engine_environment == {}


def _argv(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
