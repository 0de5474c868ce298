"""The texts that the slurm launcher gives to Slurm, and what it makes of Slurm's answers."""

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from clusters import Cluster, eventually
from starts import python

from perfgate.campaign.serving import run_to_end
from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.failures import FAILURES
from perfgate.launchers.base import Exit, PlacementRequest, launcher
from perfgate.launchers.nodes.remote_job import RemoteJob, first_end
from perfgate.launchers.site import SlurmContainer, SlurmSite
from perfgate.launchers.slurm.calls import job_facts
from perfgate.launchers.slurm.facts import (
    JobFacts,
    cause_of,
    node_not_reached,
    of_sacct,
    of_scontrol,
)
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.launchers.slurm.script import (
    SCRIPT,
    JobRequest,
    JobSteps,
    render_job,
    request_for,
)
from perfgate.scenarios.scenario import Hardware, Scenario

RUNNING = (
    "JobId=7 JobName=perfgate-x UserId=root(0) JobState=RUNNING Reason=None Dependency=(null) "
    "Requeue=0 Restarts=0 BatchFlag=1 ExitCode=0:0 ReqNodeList=n9 ExcNodeList=n8 NodeList=n[1-2] "
    "BatchHost=n1 NumNodes=2 StdErr=/x.err"
)
REQUEST = JobRequest("perfgate-x", Path("/runs/x/start-1"), 2, 4, "GB200", 3000)


def test_it_is_registered_as_slurm() -> None:
    assert launcher["slurm"] is SlurmLauncher


class TestFacts:
    def test_of_scontrol(self) -> None:
        assert of_scontrol("7", RUNNING) == JobFacts("7", "RUNNING", "", "0:0", "n[1-2]", 0)
        waiting = RUNNING.replace("RUNNING Reason=None", "PENDING Reason=Resources")
        facts = of_scontrol("7", waiting.replace("n[1-2]", "(null)"))
        assert (facts.state, facts.reason, facts.nodes) == ("PENDING", "Resources", "")
        assert facts.waits
        assert not facts.runs

    def test_of_sacct(self) -> None:
        facts = of_sacct("7", "CANCELLED by 1000|0:15|n1\n")
        assert facts == JobFacts("7", "CANCELLED", "", "0:15", "n1")
        assert of_sacct("7", "") is None

    @pytest.mark.parametrize(
        ("state", "reason", "failure", "of_machine"),
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
    def test_every_end_has_its_class(
        self, state: str, reason: str, failure: str, of_machine: bool
    ) -> None:
        met = RunError("killed", "server ended by itself", evidence=("a line",))
        error = cause_of(JobFacts("7", state, reason, "0:15", "n1"), met)
        assert (error.failure, FAILURES[failure].of_machine) == (failure, of_machine)
        assert error.evidence == ("a line",)
        assert f"job 7 is {state}" in error.message
        assert "server ended by itself" in error.message

    @pytest.mark.parametrize(
        ("told", "status"),
        [
            ("srun: error: n4: task 1: Exited with exit code 5", 5),
            ("srun: error: n4: tasks 1-3,5: Killed", -9),
            ("srun: error: n4: task 1: Segmentation fault (core dumped)", -11),
            ("srun: error: n4: task 1: Out Of Memory", None),
            ("rank 1: n4: task 1: Killed", None),
        ],
    )
    def test_the_task_that_ended_first(self, told: str, status: int | None) -> None:
        later = "srun: error: n3: task 0: Terminated"
        assert first_end(["engine: goes on", told + "\n"]) == status
        if status is not None:
            assert first_end([told, later]) == status

    def test_a_node_that_starts_nothing_is_known_by_what_srun_says(self) -> None:
        said = "srun: error: Task launch for StepId=1.5 failed on node n1: Communication failure"
        assert node_not_reached(("a line", said)) == "n1"
        assert node_not_reached(("srun: error: n1: task 0: Exited with exit code 3",)) is None

    def test_a_job_that_runs_again_was_put_back(self) -> None:
        assert cause_of(JobFacts("7", "RUNNING", restarts=1)).failure == "requeued"


class TestRendered:
    def test_site_options_stand_in_the_script_and_the_rest_on_the_command_line(self) -> None:
        site = SlurmSite(
            partition="batch", account="perf", gres="gpu:{gpu}:{gpus}", segment=2, memory="500G"
        )
        rendered = render_job(replace(REQUEST, exclude=("n3",)), site)
        assert rendered.argv == (
            *("sbatch", "--parsable", "--no-requeue", "--job-name=perfgate-x", "--nodes=2"),
            *("--ntasks-per-node=4", "--output=/runs/x/start-1/allocation.job.out"),
            *("--error=/runs/x/start-1/allocation.job.err", "--chdir=/runs/x/start-1"),
            *("--exclude=n3", "/runs/x/start-1/allocation.sbatch"),
        )
        told = [line for line in rendered.script_text.splitlines() if line.startswith("#SBATCH")]
        assert told == [
            "#SBATCH --time=50",
            "#SBATCH --partition=batch",
            "#SBATCH --account=perf",
            "#SBATCH --gres=gpu:gb200:4",
            "#SBATCH --exclusive",
            "#SBATCH --mem=500G",
            "#SBATCH --segment=2",
        ]

    def test_without_gpus_none_are_asked_for(self, scenario: Scenario) -> None:
        start_request = request_for(scenario, SlurmSite(), Path("/runs"), 600)
        assert "--gres" not in render_job(start_request, SlurmSite()).script_text

    def test_the_time_has_a_margin_and_a_most(self, scenario: Scenario) -> None:
        site = SlurmSite(time_margin_s=100)
        assert request_for(scenario, site, Path("/runs"), 600).seconds == 700
        most = replace(site, most_time_s=300)
        assert request_for(scenario, most, Path("/runs"), 600).seconds == 300

    def test_gpus_are_those_of_a_node(self, scenario: Scenario) -> None:
        needs = replace(scenario, hardware=Hardware("GB200", 16, 4))
        start_request = request_for(needs, SlurmSite(), Path("/runs"), 600)
        assert (start_request.nodes, start_request.gpus_per_node) == (4, 4)

    def test_a_second_line_is_refused(self) -> None:
        with pytest.raises(InputError):
            render_job(REQUEST, SlurmSite(options=("--comment=a\n#SBATCH --mail-user=b",)))

    def test_a_percent_sign_is_no_pattern(self) -> None:
        rendered = render_job(replace(REQUEST, folder=Path("/runs/5%j")), SlurmSite())
        assert "--output=/runs/5%%j/allocation.job.out" in rendered.argv

    def test_steps_leave_the_jobs_own_options_behind(self) -> None:
        names = ("SLURM_NTASKS", "SLURM_CONF", "SLURM_JOB_ID", "SLURM_TASKS_PER_NODE", "HOME")
        argv = JobSteps("7", SlurmSite(), names).srun(["n1"], "server", Path("/runs"))
        assert argv[:6] == ("env", "-u", "SLURM_NTASKS", "-u", "SLURM_TASKS_PER_NODE", "srun")
        assert {"--jobid=7", "--overlap", "--chdir=/runs"} <= set(argv)
        assert argv[argv.index("-w") + 1] == "n1"

    def test_only_what_is_contained_runs_in_the_container(self) -> None:
        site = SlurmSite(container=SlurmContainer("nvcr.io#x:1", ("/models:/models",)))
        inside = JobSteps("7", site).srun(["n1"], "server", Path("/runs"), contained=("A", "B"))
        assert inside[-5:] == (
            "--container-image=nvcr.io#x:1",
            "--container-mounts=/models:/models,/runs:/runs",
            *("--container-workdir", "/runs"),
            "--container-env=A,B",
        )
        beside = JobSteps("7", site).srun(["n1"], "client", Path("/runs"))
        assert not [word for word in beside if "container" in word]

    def test_an_srun_call_becomes_a_step_of_the_job(self) -> None:
        site = SlurmSite(step_options=("--network=no_vni",))
        argv = JobSteps("7", site).call(("srun", "-N", "2", "engine"), "server", Path("/runs"))
        assert argv == (
            *("srun", "--jobid=7", "--overlap", "--job-name=server", "--export=ALL"),
            *("--input=none", "--chdir=/runs", "--network=no_vni", "--kill-on-bad-exit=1"),
            *("-N", "2", "engine"),
        )


class _Ended:
    """An srun call that has ended."""

    name, mark = "server", "m"

    def __init__(self, status: int | None, log: Path) -> None:
        self.status = status
        self.folder, self.stdout, self.stderr = log.parent, log, log

    def poll(self) -> Exit:
        return Exit(self.status, "exited", 1.0)


class _Silent:
    """Nodes that are not asked."""

    def look(self, *words: str, seconds: float = 0.0) -> str:
        raise AssertionError(words)

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        raise AssertionError(mark)


@pytest.mark.parametrize(
    ("told", "meant"), [(0, 0), (7, 7), (128, 128), (137, -9), (143, -15), (255, 255), (None, None)]
)
def test_a_tasks_signal_is_told_as_a_signal(
    tmp_path: Path, told: int | None, meant: int | None
) -> None:
    log = tmp_path / "server.err"
    log.touch()
    ended = RemoteJob(_Ended(told, log), _Silent()).poll()  # type: ignore[arg-type]
    assert ended is not None
    assert ended.status == meant


# With the real Slurm. ----------------------------------------------------------------------


@pytest.fixture
def unseen() -> Iterator[Path]:
    """A folder of this machine's shared memory, where each node has its own."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
class TestOnTheCluster:
    @pytest.mark.parametrize(
        ("command", "status"),
        [
            (python("pass"), 0),
            (python("raise SystemExit(3)"), 3),
            (python("import os; os.kill(os.getpid(), 9)"), -9),
            (python("import os; os.kill(os.getpid(), 11)"), -11),
            (Command(("/no/such/program",)), 2),
        ],
    )
    def test_statuses(self, start_request: PlacementRequest, command: Command, status: int) -> None:
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(command, start_request.folder, "one") as job,
        ):
            assert job.wait(total_s=30).status == status
        facts = job_facts(placement.facts["slurm"]["job"])  # type: ignore[index,call-overload]
        assert facts.state == "CANCELLED"

    def test_what_a_program_prints_and_writes_is_here(
        self, start_request: PlacementRequest
    ) -> None:
        command = dataclasses.replace(
            python("import os; print(open('in').read(), os.environ['A'], os.uname().nodename)"),
            files={"in": "text"},
            env={"A": "a b"},
            stdout="told.txt",
        )
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(command, start_request.folder, "one") as job,
        ):
            assert job.wait(total_s=30).status == 0
        assert (start_request.folder / "told.txt").read_text() in [
            f"text a b n{n}\n" for n in range(5)
        ]

    def test_a_step_gets_values_that_no_argv_and_no_file_shows(
        self, start_request: PlacementRequest
    ) -> None:
        code = "import os, sys, time; print(len(os.environ['MY_LICENCE']), flush=True)"
        command = replace(python(f"{code}; time.sleep(60)"), env={"MY_LICENCE": "open sesame"})
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(command, start_request.folder, "server") as job,
        ):
            eventually(lambda: job.stdout.read_text() == "11\n")
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    assert not [word for word in process.cmdline() if "sesame" in word]
        files = [file for file in start_request.folder.rglob("*") if file.is_file()]
        assert not [file for file in files if "sesame" in file.read_text(errors="replace")]

    def test_what_the_site_says_stays_one_option(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        """Slurm itself reads the quotes of a job script."""
        hostile = 'a b "c" --job-name=x; $(touch planted) #d \\'
        site = SlurmSite(options=(f"--comment={hostile}",))
        with SlurmLauncher(site).placed(start_request) as placement:
            job = placement.facts["slurm"]["job"]  # type: ignore[index,call-overload]
            shown = slurm.run(("scontrol", "show", "job", str(job))).stdout
        assert f"Comment={hostile}" in shown
        assert f"JobName=perfgate-{start_request.scenario.id}" in shown

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
        self, start_request: PlacementRequest, unseen: Path
    ) -> None:
        nowhere = replace(start_request, folder=unseen)
        with pytest.raises(RunError) as caught, SlurmLauncher().placed(nowhere) as placement:
            placement.free_port()
        assert caught.value.failure == "boot_failed"
        assert "does the node see the run folder?" in str(caught.value)

    def test_a_node_of_an_allocation_that_does_not_see_the_folder_is_told(
        self,
        start_request: PlacementRequest,
        slurm: Cluster,
        unseen: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        job = slurm.submit("sleep 60", "--exclusive", "--mem=0")
        slurm.wait_for(job, "RUNNING")
        monkeypatch.setenv("SLURM_JOB_ID", job)
        nowhere = replace(start_request, folder=unseen)
        with pytest.raises(RunError) as caught, SlurmLauncher().placed(nowhere) as placement:
            placement.free_port()
        slurm.run(("scancel", job))
        slurm.wait_for(job)
        assert caught.value.failure == "config_error"
        assert f"does not see {unseen}" in str(caught.value)
        assert "same path on every node" in str(caught.value)

    def test_a_place_that_is_lost_is_not_there(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        with SlurmLauncher().placed(start_request) as placement:
            placement.require()
            job = str(placement.facts["slurm"]["job"])  # type: ignore[index,call-overload]
            slurm.run(("scancel", job))
            slurm.wait_for(job)
            with pytest.raises(RunError) as caught:
                placement.require()
        assert caught.value.failure == "job_cancelled"

    def test_what_a_step_leaves_behind_in_an_allocation_ends(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = slurm.submit("sleep 60", "--exclusive", "--mem=0")
        slurm.wait_for(job, "RUNNING")
        monkeypatch.setenv("SLURM_JOB_ID", job)
        stray = Command(("sh", "-c", "setsid sleep 4321 </dev/null >/dev/null 2>&1 & echo $!"))
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(stray, start_request.folder, "one") as step,
        ):
            step.wait(total_s=30)
            pid = int(step.stdout.read_text())
            assert Path(f"/proc/{pid}").exists()
        assert not Path(f"/proc/{pid}/cmdline").exists() or _is_zombie(pid)
        assert slurm.job_state(job) == "RUNNING"
        slurm.run(("scancel", job))
        slurm.wait_for(job)

    def test_a_documented_srun_reaches_all_nodes_of_the_job(
        self, start_request: PlacementRequest
    ) -> None:
        two = replace(
            start_request, scenario=replace(start_request.scenario, hardware=Hardware("none", 0, 2))
        )
        ranks = Command(("srun", "-N", "2", "--ntasks", "2", "--ntasks-per-node=1", "hostname"))
        with (
            SlurmLauncher().placed(two) as placement,
            placement.start(ranks, start_request.folder, "one") as job,
        ):
            assert job.wait(total_s=30).status == 0
        nodes = placement.facts["slurm"]["nodes"]  # type: ignore[index,call-overload]
        assert sorted(job.stdout.read_text().split()) == nodes
        assert len(nodes) == 2

    def test_a_program_over_its_memory_is_told_as_such(
        self, start_request: PlacementRequest
    ) -> None:
        eater = python("import time; eaten = bytearray(6 * 10**8); time.sleep(30)")
        with (
            SlurmLauncher(SlurmSite(memory="100M")).placed(start_request) as placement,
            placement.start(eater, start_request.folder, "one") as job,
            pytest.raises(RunError) as caught,
        ):
            run_to_end(job, None, start_request.scenario.limits)
        assert caught.value.failure == "oom"

    def test_an_allocation_that_is_too_small_is_told(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = slurm.submit("sleep 60")
        slurm.wait_for(job, "RUNNING")
        monkeypatch.setenv("SLURM_JOB_ID", job)
        two = replace(
            start_request, scenario=replace(start_request.scenario, hardware=Hardware("none", 0, 2))
        )
        with pytest.raises(InputError, match="allocation is too small"):
            SlurmLauncher().placed(two).__enter__()
        slurm.run(("scancel", job))
        slurm.wait_for(job)
        with pytest.raises(RunError) as caught:
            SlurmLauncher().placed(start_request).__enter__()
        assert caught.value.failure == "job_cancelled"

    def test_a_bad_node_is_not_asked_for_again(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        start = SlurmLauncher(SlurmSite())
        with start.placed(start_request) as placement:
            node = placement.facts["slurm"]["nodes"][0]  # type: ignore[index,call-overload]
            slurm.run(("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test"))
            cause = placement.explained(RunError("killed", "it ended"))
        assert cause.failure == "node_failed"
        slurm.resume(str(node))
        again = replace(start_request, folder=start_request.folder.parent / "again")
        with start.placed(again) as placement:
            assert placement.facts["slurm"]["nodes"] != [node]  # type: ignore[index,call-overload]

    def test_the_environment_goes_before_the_site_file(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site = SlurmSite(options=("--comment=the site's # own",), time_margin_s=600)
        monkeypatch.setenv("SBATCH_TIMELIMIT", "7")
        with SlurmLauncher(site).placed(start_request) as placement:
            job = str(placement.facts["slurm"]["job"])  # type: ignore[index,call-overload]
            line = slurm.run(("scontrol", "show", "job", job, "-o")).stdout
        assert "TimeLimit=00:07:00" in line
        assert "Comment=the site's # own" in line
        assert (
            (start_request.folder / SCRIPT).read_text().startswith("#!/bin/sh\n#SBATCH --time=11\n")
        )


def _is_zombie(pid: int) -> bool:
    try:
        return ") Z" in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
