"""The texts that the slurm launcher gives to Slurm, and what it makes of Slurm's answers."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from clusters import Cluster, eventually, lives
from starts import allocation, job_of, no_port, nodes_of, on_nodes, python, started
from tables import each

from perfgate.campaign.serving import run_to_end
from perfgate.core.errors import InputError, RunError
from perfgate.core.failures import FAILURES
from perfgate.core.programs.command import Command
from perfgate.launchers.base import Exit, PlacementRequest
from perfgate.launchers.site import SlurmSite
from perfgate.launchers.slurm.calls import (
    JobFacts,
    cause_of,
    job_facts,
    of_sacct,
    of_scontrol,
    status_of_task,
)
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.launchers.slurm.script import JobSteps, render_job
from perfgate.scenarios.scenario import Hardware, Scenario

RUNNING = (
    "JobId=7 JobName=perfgate-x JobState=RUNNING Reason=None Restarts=0 ExitCode=0:0 "
    "ReqNodeList=n9 ExcNodeList=n8 NodeList=n[1-2] BatchHost=n1 NumNodes=2"
)
TWO = Hardware("none", 0, 2)


def test_a_job_as_scontrol_and_as_sacct_tell_it() -> None:
    assert of_scontrol("7", RUNNING) == JobFacts("7", "RUNNING", "", "0:0", "n[1-2]", 0)
    waiting = RUNNING.replace("RUNNING Reason=None", "PENDING Reason=Resources")
    facts = of_scontrol("7", waiting.replace("n[1-2]", "(null)"))
    assert (facts.state, facts.reason, facts.nodes) == ("PENDING", "Resources", "")
    found = of_sacct("7", "CANCELLED by 1000|0:15|n1\n")
    assert found == JobFacts("7", "CANCELLED", "", "0:15", "n1")
    assert of_sacct("7", "") is None


@each(
    "state, reason, failure, of_machine",
    [
        ("NODE_FAIL", "NodeDown", "node_failed", True),
        ("BOOT_FAIL", "", "boot_failed", True),
        ("FAILED", "JobLaunchFailure", "boot_failed", True),
        ("PREEMPTED", "", "preempted", True),
        ("PENDING", "BeginTime", "requeued", True),
        ("TIMEOUT", "TimeLimit", "job_time_limit", False),
        ("DEADLINE", "", "job_time_limit", False),
        ("CANCELLED", "", "job_cancelled", False),
        ("OUT_OF_MEMORY", "OutOfMemory", "oom", False),
        ("FAILED", "NonZeroExitCode", "job_ended", False),
        ("COMPLETED", "", "job_ended", False),
    ],
)
def test_every_end_has_its_class(state: str, reason: str, failure: str, of_machine: bool) -> None:
    met = RunError("killed", "server ended by itself", evidence=("a line",))
    error = cause_of(JobFacts("7", state, reason, "0:15", "n1"), met)
    assert (error.failure, FAILURES[failure].of_machine) == (failure, of_machine)
    assert error.evidence == ("a line",)
    assert f"job 7 is {state}" in error.message
    assert "server ended by itself" in error.message


def test_a_job_that_runs_again_was_put_back() -> None:
    assert cause_of(JobFacts("7", "RUNNING", restarts=1)).failure == "requeued"


def test_the_time_has_a_margin_and_a_most_and_gpus_are_asked_for_where_some_are_needed(
    scenario: Scenario,
) -> None:
    site = SlurmSite(time_margin_s=100)
    text = render_job(scenario, site, Path("/runs"), 600).script_text
    assert "--time=12\n" in text
    assert "--gres" not in text
    most = replace(site, most_time_s=300)
    assert "--time=5\n" in render_job(scenario, most, Path("/runs"), 600).script_text
    two = replace(scenario, hardware=Hardware("GB200", 8, 2))
    assert "--gres=gpu:4\n" in render_job(two, site, Path("/runs"), 600).script_text


def test_a_second_line_is_refused_and_a_percent_sign_is_no_pattern(scenario: Scenario) -> None:
    rendered = render_job(scenario, SlurmSite(), Path("/runs/5%j"), 3000, {"n3"})
    assert {"--output=/runs/5%%j/allocation.job.out", "--exclude=n3"} < set(rendered.argv)
    two_lines = SlurmSite(options=("--comment=a\n#SBATCH --mail-user=b",))
    with pytest.raises(InputError):
        render_job(scenario, two_lines, Path("/runs"), 3000)


def test_steps_leave_the_jobs_own_options_behind() -> None:
    names = ("SLURM_NTASKS", "SLURM_CONF", "SLURM_JOB_ID", "SLURM_TASKS_PER_NODE", "HOME")
    argv = JobSteps("7", SlurmSite(), names).srun(["n1"], "server", Path("/runs"))
    assert argv[:6] == ("env", "-u", "SLURM_NTASKS", "-u", "SLURM_TASKS_PER_NODE", "srun")


@each(
    "status, said, meant",
    [
        *((status, "", status) for status in (0, 7, 128, 255, None)),
        (137, "", -9),
        (143, "", -15),
        (143, "n4: task 1: Exited with exit code 5", 5),
        (143, "n4: tasks 1-3,5: Killed", -9),
        (143, "n4: task 1: Segmentation fault (core dumped)", -11),
        (143, "n4: task 1: Out Of Memory", -15),
    ],
)
def test_a_status_is_that_of_the_task_that_ended_first(
    tmp_path: Path, status: int | None, said: str, meant: int | None
) -> None:
    log = tmp_path / "server.err"
    later = "srun: error: n3: task 0: Terminated\n"
    log.write_text(f"rank 1: n4: task 1: Killed\nsrun: error: {said}\n{later}" if said else "")
    assert status_of_task(Exit(status, "exited", 1.0), log) == meant


# With the real Slurm. ----------------------------------------------------------------------


@pytest.fixture
def unseen() -> Iterator[Path]:
    """A folder of this machine's shared memory, where each node has its own."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
class TestOnTheCluster:
    def test_statuses(self, start_request: PlacementRequest) -> None:
        expected = (
            (python("pass"), 0),
            (python("raise SystemExit(3)"), 3),
            (python("import os; os.kill(os.getpid(), 9)"), -9),
            (python("import os; os.kill(os.getpid(), 11)"), -11),
            (Command(("/no/such/program",)), 2),
        )
        folder = start_request.folder
        with SlurmLauncher().placed(start_request) as placement, ExitStack() as stack:
            jobs = [
                stack.enter_context(placement.start(command, folder, f"job-{number}"))
                for number, (command, _) in enumerate(expected)
            ]
            found = [job.wait(total_s=60).status for job in jobs]
        assert found == [status for _, status in expected]
        assert job_facts(job_of(placement)).state == "CANCELLED"

    def test_a_program_gets_what_it_is_given_and_no_argv_or_file_shows_a_secret(
        self, start_request: PlacementRequest
    ) -> None:
        code = (
            "import os, time\n"
            "print(open('in').read(), os.environ['A'], len(os.environ['MY_LICENCE']),\n"
            "      os.uname().nodename, flush=True)\n"
            "time.sleep(60)"
        )
        env = {"A": "a b", "MY_LICENCE": "open sesame"}
        command = replace(python(code), files={"in": "text"}, env=env, stdout="told.txt")
        told = start_request.folder / "told.txt"
        with started(start_request, command) as (placement, _):
            eventually(lambda: told.exists() and told.read_text().endswith("\n"))
            assert told.read_text() == f"text a b 11 {nodes_of(placement)[0]}\n"
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    assert not [word for word in process.cmdline() if "sesame" in word]
        files = [file for file in start_request.folder.rglob("*") if file.is_file()]
        assert not [file for file in files if "sesame" in file.read_text(errors="replace")]

    def test_what_the_site_says_stays_one_option_and_the_environment_goes_before_it(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Slurm itself reads the quotes of a job script."""
        hostile = "the site's # own" + ' "c" --job-name=x; $(touch planted) #d \\'
        site = SlurmSite(options=(f"--comment={hostile}",), time_margin_s=600)
        monkeypatch.setenv("SBATCH_TIMELIMIT", "7")
        with SlurmLauncher(site).placed(start_request) as placement:
            shown = slurm.run(("scontrol", "show", "job", job_of(placement))).stdout
        assert f"Comment={hostile}" in shown
        assert f"JobName=perfgate-{start_request.scenario.id}" in shown
        assert "TimeLimit=00:07:00" in shown

    def test_port_and_cpu_time_are_those_of_the_node(self, start_request: PlacementRequest) -> None:
        with SlurmLauncher().placed(start_request) as placement:
            port = placement.free_port()
            code = (
                "import socket, time\n"
                f"s = socket.create_server(('{placement.host}', {port}))\n"
                "end = time.process_time() + 0.5\n"
                "while time.process_time() < end: pass\n"
                "time.sleep(60)"
            )
            with placement.start(python(code), start_request.folder, "server") as job:
                eventually(lambda: job.listens(port))
                assert not job.listens(port + 1)
                eventually(lambda: 0.5 <= job.cpu_seconds() < 5)

    def test_a_node_that_does_not_see_the_folder_is_told(
        self,
        start_request: PlacementRequest,
        slurm: Cluster,
        unseen: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        nowhere = replace(start_request, folder=unseen)
        own = no_port(nowhere)
        assert own.failure == "boot_failed"
        assert "does the node see the run folder?" in str(own)
        with allocation(slurm) as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            shared = no_port(nowhere)
        assert shared.failure == "config_error"
        assert f"does not see {unseen}" in str(shared)
        assert "same path on every node" in str(shared)

    def test_a_place_that_is_lost_is_not_there(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        with SlurmLauncher().placed(start_request) as placement:
            placement.require()
            slurm.run(("scancel", job_of(placement)))
            slurm.wait_for(job_of(placement))
            with pytest.raises(RunError) as caught:
                placement.require()
        assert caught.value.failure == "job_cancelled"

    def test_what_a_step_leaves_behind_in_an_allocation_ends(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stray = Command(("sh", "-c", "setsid sleep 4321 </dev/null >/dev/null 2>&1 & echo $!"))
        with allocation(slurm) as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            with started(start_request, stray) as (_, step):
                step.wait(total_s=30)
                pid = int(step.stdout.read_text())
                assert psutil.pid_exists(pid)
            assert not lives(pid)
            assert slurm.job_state(job) == "RUNNING"

    def test_a_program_over_its_memory_is_told_as_such(
        self, start_request: PlacementRequest
    ) -> None:
        eater = python("import time; eaten = bytearray(6 * 10**8); time.sleep(30)")
        with (
            started(start_request, eater, SlurmSite(memory="100M")) as (_, job),
            pytest.raises(RunError) as caught,
        ):
            run_to_end(job, None, start_request.scenario.limits)
        assert caught.value.failure == "oom"

    def test_an_allocation_that_is_too_small_or_over_is_told(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with allocation(slurm) as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            with pytest.raises(InputError, match="allocation is too small"):
                SlurmLauncher().placed(on_nodes(start_request, TWO)).__enter__()
        with pytest.raises(RunError) as caught:
            SlurmLauncher().placed(start_request).__enter__()
        assert caught.value.failure == "job_cancelled"

    def test_a_bad_node_is_not_asked_for_again(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        start = SlurmLauncher(SlurmSite())
        with start.placed(start_request) as placement:
            (node,) = nodes_of(placement)
            slurm.run(("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test"))
            cause = placement.explained(RunError("killed", "it ended"))
        assert cause.failure == "node_failed"
        slurm.resume(node)
        again = replace(start_request, folder=start_request.folder.parent / "again")
        with start.placed(again) as placement:
            assert nodes_of(placement) != [node]
