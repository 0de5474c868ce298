"""The nodes as a place: what they say of themselves, ranks on them, how a program ends there."""

import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster, eventually
from starts import allocation, job_of, nodes_of, nothing_is_left, on_nodes, python, started

from perfgate.core.errors import RunError
from perfgate.core.files.paths import repository
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.nodes import placement as nodes_placement
from perfgate.launchers.site import SlurmContainer, SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.plan.toolchain import toolchain_for
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Hardware, Launch
from perfgate.scenarios.selection import pick

pytestmark = pytest.mark.slow

BOX = SlurmContainer("registry#image:1", ("/models:/models",))
FOUR_GPUS = Hardware("B200", 4, 1)


class TestDoctor:
    def test_the_first_nodes_facts_and_what_failed_on_the_others(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        two = pick(load_scenarios(repository() / "scenarios"), "h200-v3-fp8-2node-slurm")
        with SlurmLauncher().placed(replace(start_request, scenario=two)) as placement:
            told: Any = placement.doctor()
        assert told is not None
        first, second = nodes_of(placement)
        assert told["machine"]["host"] == first
        checks = {one["name"]: one for one in told["checks"]}
        # The GPUs are pretended: looked for on the nodes, and not there.
        assert "needs 2×8×H200, found none" in checks["gpus"]["found"]
        assert checks[f"{second} gpus"]["outcome"] == "failed"
        assert {"engine", "model", "run folder"} <= set(checks)
        nothing_is_left(slurm, start_request.folder)

    def test_in_a_container_the_engine_is_not_looked_for(
        self, start_request: PlacementRequest
    ) -> None:
        launcher = SlurmLauncher(SlurmSite(container=BOX))
        with launcher.placed(start_request) as placement:
            told: Any = placement.doctor()
        outcomes = {one["name"]: one["outcome"] for one in told["checks"]}
        assert outcomes["engine"] == outcomes["clients"] == "unknown"
        assert outcomes["container"] == "failed"  # the plugin is not here

    def test_a_doctor_that_cannot_be_asked_is_told(
        self, start_request: PlacementRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fails = python("import sys; sys.exit('no such file')")
        monkeypatch.setattr(nodes_placement, "doctor_command", lambda *_, **__: fails)
        with SlurmLauncher().placed(start_request) as placement, pytest.raises(RunError) as caught:
            placement.doctor()
        assert caught.value.failure == "config_error"
        assert "could not be checked" in str(caught.value)


@pytest.mark.parametrize("in_allocation", [True, False])
def test_steps_of_the_engine_see_the_jobs_gpus(
    start_request: PlacementRequest,
    slurm: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    in_allocation: bool,
) -> None:
    show = python("import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))")
    with allocation(slurm, "-N1") as job:  # it did not ask for GPUs, but has the node
        if in_allocation:
            monkeypatch.setenv("SLURM_JOB_ID", job)
        with started(on_nodes(start_request, FOUR_GPUS), show) as (_, step):
            step.wait(total_s=30)
    assert step.stdout.read_text() == "0,1,2,3\n"


RANK = """\
import os, socket, sys
print(os.environ["PMIX_RANK"], os.uname().nodename, os.environ["FROM_DOCUMENT"],
      os.environ["OF_COMMAND"], os.environ["CUDA_VISIBLE_DEVICES"], sys.argv[1:])
"""


@pytest.mark.parametrize("by", ["sbatch", "mpirun", "srun"])
def test_a_documented_launch_becomes_ranks_of_the_job(
    start_request: PlacementRequest,
    slurm: Cluster,
    by: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    launching = tmp_path / "trtllm-llmapi-launch"  # the real one runs the program on one rank
    launching.write_text('#!/bin/sh\nexec "$@"\n')
    launching.chmod(0o755)
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_LLMAPI_LAUNCH", str(launching))
    launch = Launch(by, pass_on={"FROM_DOCUMENT": "a b"})
    two = on_nodes(start_request, Hardware("GB200", 4, 2), launch)
    site = SlurmSite(step_options=("--wait=0",))
    engine = Command((sys.executable, "-c", RANK, "an argument"), env={"OF_COMMAND": "c"})
    with SlurmLauncher(site).placed(two) as placement:
        command = placement.launched(engine, Locations())
        with placement.start(command, start_request.folder, "benchmark") as job:
            assert job.wait(total_s=60).status == 0, job.tail()
        first, second = nodes_of(placement)
        assert sorted(job.stdout.read_text().splitlines()) == [
            f"{rank} {node} a b c 0,1 ['an argument']"
            for rank, node in enumerate([first, first, second, second])
        ]
    nothing_is_left(slurm, start_request.folder)


@pytest.mark.parametrize(("ends", "status"), [("sys.exit(5)", 5), ("os.kill(os.getpid(), 9)", -9)])
def test_one_rank_that_ends_badly_ends_all(
    start_request: PlacementRequest,
    slurm: Cluster,
    ends: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_LLMAPI_LAUNCH", "env")
    code = (
        "import os, sys, time\n"
        f"if os.environ['PMIX_RANK'] == '1': {ends}\n"
        "time.sleep(600)  # as one that waits for another rank\n"
    )
    two = on_nodes(start_request, Hardware("GB200", 2, 2), Launch("srun"))
    with SlurmLauncher().placed(two) as placement:
        command = placement.launched(python(code), Locations())
        with placement.start(command, start_request.folder, "benchmark") as job:
            ended = job.wait(total_s=60)
    assert (ended.reason, ended.status) == ("exited", status)
    nothing_is_left(slurm, start_request.folder)


POLITE = """\
import signal, sys, time
def end(*_):
    print("ends politely", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)  # it hangs here
"""
DEAF = POLITE.replace("sys.exit(0)", "pass")


class TestEnds:
    @pytest.mark.parametrize(
        ("code", "grace_s", "status"), [(POLITE, 30, 0), (DEAF, 0.5, -signal.SIGKILL)]
    )
    def test_a_program_is_asked_to_end_and_killed_where_it_does_not_listen(
        self,
        start_request: PlacementRequest,
        slurm: Cluster,
        code: str,
        grace_s: float,
        status: int,
    ) -> None:
        with started(start_request, python(code)) as (_, job):
            eventually(lambda: "ready" in job.stdout.read_text())
            ended = job.stop(grace_s=grace_s)
        assert (ended.reason, ended.status) == ("stopped", status)
        assert job.stdout.read_text().startswith("ready\nends politely\n")
        nothing_is_left(slurm, start_request.folder)

    def test_the_evidence_of_a_hang_is_that_of_the_node(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        with started(start_request, python(POLITE)) as (placement, job):
            eventually(lambda: "ready" in job.stdout.read_text())
            assert job.wait(silence_s=0.5).reason == "silence"
            (node,) = nodes_of(placement)
        evidence = (start_request.folder / "job.evidence.txt").read_text()
        here, _, there = evidence.partition(f"on {node}:\n")
        assert "it wrote nothing for 0.5 s" in here
        assert "srun" in here
        assert "# it hangs here" in there
        assert "stacks:" in there
        assert list(start_request.folder.glob("*.evidence.txt.*")) == []
        nothing_is_left(slurm, start_request.folder)

    def test_evidence_of_a_lost_place_says_why_there_is_none(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        with started(start_request, python(POLITE)) as (placement, job):
            slurm.run(("scancel", job_of(placement)))
            slurm.wait_for(job_of(placement))
            job.keep_evidence("to see")
        evidence = (start_request.folder / "job.evidence.txt").read_text()
        assert "nothing is known: " in evidence


class TestInside:
    """The site's container; a script before the real srun plays the plugin that is not here."""

    @pytest.fixture(autouse=True)
    def _srun_knows_containers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = tmp_path / "options"
        script = tmp_path / "bin" / "srun"
        script.parent.mkdir()
        script.write_text(
            "#!/bin/bash\nfor word; do case $word in\n"
            f'--container-*) echo "$word" >> {self.log} ;;\n'
            f'*) kept+=("$word") ;; esac; done\nexec {shutil.which("srun")} "${{kept[@]}}"\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")

    def _inside(self, start_request: PlacementRequest, **site: Any) -> Locations:
        here = Locations(models=Path("/models"), source=Path("/source"))
        launcher = SlurmLauncher(SlurmSite(container=BOX, **site))
        return launcher.locations(toolchain_for(start_request.scenario, here))

    def test_a_program_of_the_engine_is_asked_there(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        locations = self._inside(start_request, options=("--comment=x",))
        argv = ("sh", "-c", "uname -n; echo to stderr >&2; exit 3")
        answer = locations.ask(argv, 60, of_engine=True)
        assert answer.stdout.strip() in slurm.nodes
        assert answer.stderr == "to stderr\n"
        assert answer.status == 3
        assert self.log.read_text().splitlines() == [
            "--container-image=registry#image:1",
            "--container-mounts=/models:/models,/source:/source",
        ]
        missing = locations.ask(("no-such-program", "--version"), 60, of_engine=True)
        assert missing.status == 127
        assert "no-such-program" in missing.trouble
        nothing_is_left(slurm, Path("/tmp/perfgate-asked-"))

    def test_in_an_allocation_it_is_asked_there(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with allocation(slurm, "-N1") as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            locations = self._inside(start_request)
            answer = locations.ask(("printenv", "SLURM_JOB_ID"), 60, of_engine=True)
        assert answer.stdout == f"{job}\n"

    def test_a_program_that_takes_too_long_is_ended(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        answer = self._inside(start_request).ask(("sleep", "600"), 0.5, of_engine=True)
        assert answer.status is None
        assert "no answer from sleep within 0.5 s" in answer.why
        nothing_is_left(slurm, Path("/tmp/perfgate-asked-"))

    def test_a_container_that_cannot_be_had_is_told(self, start_request: PlacementRequest) -> None:
        locations = self._inside(start_request, partition="no-such")
        with pytest.raises(RunError) as caught:
            locations.ask(("true",), 60, of_engine=True)
        assert caught.value.failure == "config_error"
        assert "nvalid partition" in str(caught.value)
