"""The mpirun launcher with the real Open MPI and ssh: what it starts, and what becomes of it.

The hosts' processes are this machine's, so that what is left of them can be seen from here. That
is also why what is asked of one host is answered with the processes of both.
"""

import json
import os
import shutil
import signal
import socket
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import Cluster, eventually, up
from mpi_hosts import (
    PORT,
    SITE,
    host_names,
    hosted,
    in_words,
    local_scenario,
    on_host,
    orteds,
    placed,
    python,
    request,
    started,
    two_hosts,
)

from perfgate.campaign.serving import run_to_end, wait_until_ready
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines import llama_cpp
from perfgate.engines.base import Endpoint
from perfgate.engines.llama_cpp import LlamaCpp
from perfgate.launchers.base import Job, Placement
from perfgate.launchers.mpirun.hosts import HostQuery
from perfgate.launchers.mpirun.launcher import MpirunLauncher, open_mpi_version

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hosts")]

SLEEPS = python("import time; print('here', flush=True); time.sleep(3600)")


@pytest.fixture
def unseen() -> Iterator[Path]:
    """A folder of this machine's shared memory, of which each host has its own."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


def begin(placement: Placement, folder: Path, command: Command = SLEEPS) -> Job:
    """Ranks on both hosts, all of them there."""
    job = placement.start(placement.launched(command, Locations()), folder, "server")
    eventually(lambda: len(job.stdout.read_text().splitlines()) >= 5)
    return job


def failure_of(job: Job, placement: Placement) -> RunError:
    """What the run tells of a program that does not end well."""
    with pytest.raises(RunError) as caught:
        run_to_end(job, None, two_hosts().limits, otherwise="unknown")
    return placement.explained(caught.value)


def argvs_of_all() -> list[str]:
    """Every word of every process of this machine, which the hosts are on, too."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            found += process.cmdline()
    return found


class TestStarted:
    def test_statuses_are_those_of_the_program(self, tmp_path: Path) -> None:
        expected = (
            (python("pass"), 0),
            (python("raise SystemExit(3)"), 3),
            (python("import os; os.kill(os.getpid(), 11)"), -11),
            (Command(("/no/such/program",)), 132),
        )
        with placed(tmp_path) as placement, ExitStack() as stack:
            jobs = [
                stack.enter_context(placement.start(command, tmp_path, f"one-{number}"))
                for number, (command, _) in enumerate(expected)
            ]
            found = [job.wait(total_s=60).status for job in jobs]
        assert found == [status for _, status in expected]
        version = open_mpi_version(("mpirun",))
        assert placement.facts == {"mpirun": {"hosts": ["n1"], "version": version}}

    def test_what_a_program_gets_is_what_it_is_given(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing of this process's environment arrives by itself, as it would on this machine."""
        for name in ("HF_HOME", "HF_TOKEN", "NOT_HANDED_ON", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.setenv(name, f"value of {name}")
        command = replace(
            python(
                "import json, os, time\n"
                "told = [dict(os.environ), os.getcwd(), os.uname().nodename, open('in').read()]\n"
                "print(json.dumps(told), flush=True)\n"
                "time.sleep(3600)"
            ),
            env={
                "API_KEY": "s3cr3t",  # pragma: allowlist secret
                "MY_LICENCE": "s3cr3t too",  # by its name it is none
                "A": "b 'c' \"d\"; $e",
                "PERFGATE_SCENARIO": "mine",
            },
            files={"in": "text"},
            stdout="told.json",
        )
        with started(tmp_path, command, pass_on=("HF_HOME", "UNSET_NAME")):
            eventually(lambda: (tmp_path / "told.json").read_text().endswith("\n"))
            argvs = argvs_of_all()
        env, folder, host, text = json.loads((tmp_path / "told.json").read_text())
        assert env["HF_HOME"] == "value of HF_HOME"
        assert env["API_KEY"] == "s3cr3t"  # pragma: allowlist secret
        assert env["MY_LICENCE"] == "s3cr3t too"
        assert env["A"] == "b 'c' \"d\"; $e"
        assert env["PERFGATE_SCENARIO"] == "mine"
        assert "/" in env["PERFGATE_LAUNCH"]  # of the start, and of this program
        assert not {"HF_TOKEN", "NOT_HANDED_ON", "CUDA_VISIBLE_DEVICES", "UNSET_NAME"} & set(env)
        assert (folder, host, text) == (str(tmp_path), "n1", "text")
        assert not [word for word in argvs if "s3cr3t" in word]
        assert "s3cr3t" not in (tmp_path / "job.sh").read_text()

    def test_ranks_on_other_hosts_get_values_that_no_argv_shows(self, tmp_path: Path) -> None:
        """Neither mpirun's, nor that of ssh, orted or a rank, here or on a host."""
        scenario = two_hosts("mpirun", pass_on={"MY_LICENCE": "s3cr3t"})
        code = "import os, time; print(os.environ['MY_LICENCE'], flush=True); time.sleep(3600)"
        with placed(tmp_path, scenario) as placement:
            command = placement.launched(python(code), Locations())
            with placement.start(command, tmp_path, "server") as job:
                eventually(lambda: "s3cr3t" in job.stdout.read_text())
                assert not [word for word in argvs_of_all() if "s3cr3t" in word]
        assert "s3cr3t" not in (tmp_path / "server.sh").read_text()

    def test_there_is_a_rank_for_each_gpu_and_one_runs_the_program(self, tmp_path: Path) -> None:
        ends = {"PERFGATE_TEST_ENDS": "1"}
        scenario = two_hosts("mpirun", pass_on=ends, output="bench_log")
        program = python("import os; print('the program, in rank', os.environ['PMIX_RANK'])")
        with placed(tmp_path, scenario) as placement:
            command = placement.launched(program, Locations())
            with placement.start(command, tmp_path, "benchmark") as job:
                assert job.wait(total_s=60).status == 0
        assert sorted(job.stdout.read_text().splitlines()) == [
            "rank 0 on n1",
            "rank 1 on n1",
            "rank 2 on n2",
            "rank 3 on n2",
            "the program, in rank 0",
        ]
        logs = (tmp_path / "bench_log").glob("*/rank.*/stdout")
        assert {log.read_text().split()[1] for log in logs} == {"0", "1", "2", "3"}

    def test_port_cpu_time_and_evidence_are_those_of_the_host(
        self, hosts: Cluster, tmp_path: Path
    ) -> None:
        with placed(tmp_path) as placement:
            assert placement.host == hosts.nodes["n1"]
            port = placement.free_port()
            code = (
                "import socket, time\n"
                f"s = socket.create_server(('{placement.host}', {port}))\n"
                "end = time.process_time() + 0.5\n"
                "while time.process_time() < end: pass\n"
                "time.sleep(4321)"
            )
            with placement.start(python(code), tmp_path, "server") as job:
                eventually(lambda: job.listens(port))
                assert not job.listens(port + 1)
                eventually(lambda: 0.5 <= job.cpu_seconds() < 5)
                assert socket.create_connection((placement.host, port)).close() is None
                job.keep_evidence("a test")
                placement.require()
        evidence = (tmp_path / "server.evidence.txt").read_text()
        assert "time.sleep(4321)" in evidence.partition("on n1:")[2]
        assert not list(tmp_path.glob("server.evidence.txt.*"))

    def test_clients_are_beside_the_server_where_the_site_says_so(self, tmp_path: Path) -> None:
        with placed(tmp_path, clients="beside") as placement:
            client = python("import os; print(os.uname().nodename)")
            with placement.start_client(client, tmp_path, "client") as job:
                assert job.wait(total_s=60).status == 0
        assert job.stdout.read_text() == "n1\n"

    def test_a_stopped_program_is_asked_first(self, tmp_path: Path) -> None:
        code = (
            "import signal, sys, time\n"
            "def end(*_): time.sleep(2); print('well', flush=True); sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, end)\n"
            "print('here', flush=True)\n"
            "time.sleep(3600)"
        )
        with started(tmp_path, python(code)) as (_, job):
            eventually(lambda: "here" in job.stdout.read_text())
            assert job.stop().reason == "stopped"
        assert job.stdout.read_text() == "here\nwell\n"


class TestEnds:
    def test_one_rank_killed_ends_all(self, hosts: Cluster, tmp_path: Path) -> None:
        told: list[str] = []
        with placed(tmp_path, two_hosts(), told) as placement:
            with begin(placement, tmp_path) as job:
                rank = next(
                    one for one in hosted(hosts) if one.environ().get("OMPI_COMM_WORLD_RANK") == "2"
                )
                rank.kill()
                error = failure_of(job, placement)
            assert error.failure == "killed", error
            assert not hosted(hosts), in_words(hosted(hosts))
        assert "exited on signal 9" in job.stderr.read_text()
        assert told == []

    def test_ranks_of_a_killed_orted_are_ended_and_told(
        self, hosts: Cluster, tmp_path: Path
    ) -> None:
        told: list[str] = []
        with placed(tmp_path, two_hosts(), told) as placement:
            with begin(placement, tmp_path) as job:
                (orted,) = orteds(hosts, "n2")
                orted.kill()
                error = failure_of(job, placement)
                ended = job.poll()
                assert ended is not None
                assert ended.status == 205
            assert error.failure == "mpi", error
            assert "ORTE has lost communication" in str(error)
            assert on_host(hosts, "n2")  # Open MPI leaves them
        assert not hosted(hosts), in_words(hosted(hosts))
        assert [line for line in told if "processes were left, and are ended" in line]

    def test_a_killed_mpirun_leaves_nothing(self, hosts: Cluster, tmp_path: Path) -> None:
        with placed(tmp_path, two_hosts()) as placement:
            with begin(placement, tmp_path) as job:
                os.kill(job.pid, signal.SIGKILL)
                error = failure_of(job, placement)
            assert error.failure == "killed", error
        assert not on_host(hosts, "n2"), in_words(on_host(hosts, "n2"))

    def test_a_lost_host_is_told_and_not_used_again(self, hosts: Cluster, tmp_path: Path) -> None:
        start = MpirunLauncher(replace(SITE, hosts=("n1", "n4", "n3")))
        try:
            with (
                start.placed(request(two_hosts(), tmp_path / "one")) as placement,
                begin(placement, tmp_path / "one") as job,
            ):
                pid = (hosts.state / "run" / "sshd.n4.pid").read_text()
                os.kill(int(pid), signal.SIGKILL)
                (orted,) = orteds(hosts, "n4")
                orted.kill()
                error = failure_of(job, placement)
                assert error.failure == "node_failed", error
                assert "n4 does not answer" in str(error)
                with pytest.raises(RunError, match="n4 does not answer"):
                    placement.require()
        finally:
            up(hosts.state, SLURM_WITH_SSHD="1")
        with start.placed(request(two_hosts(), tmp_path / "two")) as placement:
            assert host_names(placement) == ["n1", "n3"]
        few = replace(two_hosts(), hardware=replace(two_hosts().hardware, gpus=6, nodes=3))
        with pytest.raises(RunError, match="n4 failed in this session"):
            start.placed(request(few, tmp_path / "three")).__enter__()


class TestPlaced:
    def test_a_wrong_port_is_told_in_the_words_of_ssh(
        self, hosts: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        locks = tmp_path / "locks"
        locks.mkdir()
        monkeypatch.setenv("PERFGATE_LEASES", str(locks))
        with pytest.raises(RunError) as caught:
            placed(tmp_path, ssh_port=PORT + 1).__enter__()
        assert caught.value.failure == "mpi"
        assert "Connection refused" in str(caught.value)
        assert "ssh_port" in str(caught.value)
        # Nothing was started there: nobody needs to look for it.
        note = json.loads((locks / f"host-{hosts.nodes['n1']}").read_text())
        assert note["marks"] == []

    def test_words_arrive_as_they_are_though_ssh_has_a_shell_on_the_other_side(self) -> None:
        reach = HostQuery(SITE, PORT)
        words = ("a b", "'c'", '"d"', "$HOME", "; exit 1", "*", "")
        echo = python("import json, sys; print(json.dumps(sys.argv[1:]))").argv
        assert json.loads(reach.ask(reach.host("n1"), (*echo, *words), 30.0)) == [*words]

    def test_an_unknown_host_is_told_and_left_out_where_there_are_others(
        self, tmp_path: Path
    ) -> None:
        unknown = ("no-such-host.invalid", "n2")
        told: list[str] = []
        with placed(tmp_path / "a", told=told, hosts=unknown) as placement:
            assert host_names(placement) == ["n2"]
        assert "Could not resolve hostname" in told[0]
        with pytest.raises(RunError, match="Could not resolve hostname"):
            placed(tmp_path / "b", two_hosts(), hosts=unknown).__enter__()

    def test_hosts_are_those_of_the_environment_where_the_site_names_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PERFGATE_HOSTS", raising=False)
        with pytest.raises(InputError, match="too few hosts are named"):
            placed(tmp_path, hosts=()).__enter__()
        monkeypatch.setenv("PERFGATE_HOSTS", "n3, n3")
        with placed(tmp_path, hosts=()) as placement:
            assert host_names(placement) == ["n3"]
        with pytest.raises(InputError, match="2 different hosts"):
            placed(tmp_path, two_hosts(), hosts=()).__enter__()

    def test_a_host_that_does_not_see_the_folder_is_told(self, unseen: Path) -> None:
        with pytest.raises(RunError) as caught:
            placed(unseen).__enter__()
        assert caught.value.failure == "config_error"
        assert f"n1 does not see {unseen}" in str(caught.value)
        assert "same path on every host" in str(caught.value)

    def test_this_machine_needs_no_ssh(self, tmp_path: Path) -> None:
        site = {"hosts": ("localhost",), "rsh_agent": "false"}
        with started(tmp_path, SLEEPS, **site) as (placement, job):
            assert placement.host == "127.0.0.1"
            eventually(lambda: "here" in job.stdout.read_text())
            assert 0 <= job.cpu_seconds() < 60
            pids = [one.pid for one in job.processes()]
        assert not [pid for pid in pids if psutil.pid_exists(pid)]

    def test_a_slurm_allocation_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        with pytest.raises(InputError, match="--launcher slurm"):
            placed(tmp_path).__enter__()

    def test_another_mpi_is_refused(self) -> None:
        with pytest.raises(InputError, match="not the mpirun of Open MPI"):
            open_mpi_version(("true",))

    def test_starts_do_not_share_a_host_and_wait_for_one_but_not_for_ever(
        self, tmp_path: Path
    ) -> None:
        told: list[str] = []

        def start(name: str, **site: Any) -> list[str]:
            with placed(tmp_path / name, told=told, **site) as placement:
                return host_names(placement)

        # A thread holds one start at a time, as a session does.
        with ThreadPoolExecutor(1) as other:
            with placed(tmp_path / "1") as first:
                assert host_names(first) == ["n1"]
                assert other.submit(start, "2").result(60) == ["n2"]
                with pytest.raises(RunError) as caught:
                    other.submit(start, "3", hosts=("n1",), pending_limit_s=0.1).result(60)
                told.clear()
                waits = other.submit(start, "4", hosts=("n1",))
                eventually(lambda: told)
            assert waits.result(60) == ["n1"]
        assert caught.value.failure == "gpus_busy"
        assert "waiting for 1 of 1 hosts: n1 held by run" in told[0]


@pytest.mark.real
def test_the_embedded_default_serves_from_a_host(tmp_path: Path) -> None:
    engine, scenario = LlamaCpp(), local_scenario()
    try:
        build = engine.build(Locations())
        llama_cpp.locate(scenario, Locations())
    except (MissingProgram, InputError) as error:
        pytest.skip(f"the embedded default is not installed: {error}")
    with placed(tmp_path) as placement:
        endpoint = Endpoint(placement.host, placement.free_port(), scenario.model.name)
        command = engine.serve(scenario, build, endpoint, Locations())
        with placement.start(command, tmp_path, "server") as server:
            wait_until_ready(server, engine, endpoint, scenario.limits.start_s)
            body = {"prompt": "One, two, three,", "max_tokens": 4, "temperature": 0}
            url = f"{endpoint.url}/v1/completions"
            asked = urllib.request.Request(url, json.dumps(body).encode())
            with urllib.request.urlopen(asked, timeout=60) as answer:
                text = json.load(answer)["choices"][0]["text"]
    assert text.strip()
