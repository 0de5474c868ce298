"""The nodes as a place: what they say of themselves, ranks on them, how a program ends there."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusters import Cluster, eventually
from starts import allocation, job_of, nodes_of, nothing_is_left, python

from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.paths import repository
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.nodes import placement as nodes_placement
from perfgate.launchers.nodes.preflight import scenario_text
from perfgate.launchers.site import SlurmContainer, SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.launchers.slurm.script import as_ranks
from perfgate.scenarios.exploration import explored
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Hardware, Launch, Scenario
from perfgate.scenarios.selection import pick

ON_PAPER = Locations(on_paper=True)
BOX = SlurmContainer("registry#image:1", ("/models:/models",))


@pytest.fixture(scope="module")
def suite() -> tuple[Scenario, ...]:
    return load_scenarios(repository() / "scenarios")


class TestRanks:
    NODES = ("n1", "n2")
    ENGINE = Command(("trtllm-bench", "throughput"), env={"A": "b"})

    @pytest.mark.parametrize(
        "name",
        ["gb200-r1-fp4-2node-slurm", "h200-v3-fp8-2node-slurm", "h200-v3-fp8-2node-mpirun"],
    )
    def test_every_documented_launch_is_the_same_srun(
        self, suite: tuple[Scenario, ...], name: str
    ) -> None:
        scenario = pick(suite, name)
        per_node = scenario.hardware.gpus // 2
        made = as_ranks(self.ENGINE, scenario, ON_PAPER, SlurmSite(container=BOX), self.NODES)
        assert made.argv == (
            *("srun", "-N", "2", "-w", "n1,n2", "--ntasks", f"{2 * per_node}"),
            *(f"--ntasks-per-node={per_node}", "--mpi=pmix", f"--gres=gpu:{per_node}"),
            *("trtllm-llmapi-launch", "trtllm-bench", "throughput"),
        )
        assert scenario.launch is not None
        assert made.env == {**scenario.launch.pass_on, "A": "b"}

    def test_what_is_not_launched_is_left_alone(self, suite: tuple[Scenario, ...]) -> None:
        scenario = pick(suite, "local-smollm2-serve")
        assert as_ranks(self.ENGINE, scenario, ON_PAPER, SlurmSite(), self.NODES) is self.ENGINE


def test_a_scenario_goes_to_the_node_as_it_is_started(
    suite: tuple[Scenario, ...], tmp_path: Path
) -> None:
    shaped = explored([one for one in suite if "explore" in one.markers], [(4096, 512)])
    for scenario in (*suite, *shaped):
        file = tmp_path / f"{scenario.id}.yaml"
        file.write_text(scenario_text(scenario))
        assert load_scenarios(file) == (replace(scenario, markers=()),)


def test_no_secret_goes_to_the_node_in_a_file(suite: tuple[Scenario, ...]) -> None:
    environment = {"HF_TOKEN": "hf_secret", "MY_SIGNING": "k3y", "TRTLLM_DG_ENABLED": "1"}
    scenario = replace(suite[0], environment=environment)
    text = scenario_text(scenario)
    assert "hf_secret" not in text
    assert "k3y" not in text
    assert json.loads(text)["scenarios"][0]["environment"] == {"TRTLLM_DG_ENABLED": "1"}


@pytest.mark.slow
class TestDoctor:
    def test_the_first_nodes_facts_and_what_failed_on_the_others(
        self, start_request: PlacementRequest, slurm: Cluster, suite: tuple[Scenario, ...]
    ) -> None:
        two = pick(suite, "h200-v3-fp8-2node-slurm")
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
        assert told is not None
        outcomes = {one["name"]: one["outcome"] for one in told["checks"]}
        assert outcomes["engine"] == outcomes["programs"] == "unknown"
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

    def test_steps_of_the_engine_see_the_jobs_gpus(
        self, start_request: PlacementRequest, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        four = replace(start_request.scenario, hardware=Hardware("B200", 4, 1))
        show = python("import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))")
        seen = []
        with allocation(slurm, "-N1") as job:  # it did not ask for GPUs, but has the node
            monkeypatch.setenv("SLURM_JOB_ID", job)
            with (
                SlurmLauncher().placed(replace(start_request, scenario=four)) as placement,
                placement.start(show, start_request.folder, "one") as step,
            ):
                step.wait(total_s=30)
                seen.append(step.stdout.read_text())
        monkeypatch.delenv("SLURM_JOB_ID")
        own = replace(start_request, scenario=four, folder=start_request.folder.parent / "own")
        with (
            SlurmLauncher().placed(own) as placement,
            placement.start(show, own.folder, "one") as step,
        ):
            step.wait(total_s=30)
            seen.append(step.stdout.read_text())
        assert seen == ["0,1,2,3\n"] * 2


RANK = """\
import os, socket, sys
print(os.environ["PMIX_RANK"], os.uname().nodename, os.environ["FROM_DOCUMENT"],
      os.environ["OF_COMMAND"], os.environ["CUDA_VISIBLE_DEVICES"], sys.argv[1:])
"""


@pytest.mark.slow
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
    scenario = replace(
        start_request.scenario,
        hardware=Hardware("GB200", 4, 2),
        launch=Launch(by, pass_on={"FROM_DOCUMENT": "a b"}),
    )
    site = SlurmSite(step_options=("--wait=0",))
    engine = Command((sys.executable, "-c", RANK, "an argument"), env={"OF_COMMAND": "c"})
    with SlurmLauncher(site).placed(replace(start_request, scenario=scenario)) as placement:
        command = placement.launched(engine, scenario, Locations())
        with placement.start(command, start_request.folder, "benchmark") as job:
            assert job.wait(total_s=60).status == 0, job.tail()
        first, second = nodes_of(placement)
        assert sorted(job.stdout.read_text().splitlines()) == [
            f"{rank} {node} a b c 0,1 ['an argument']"
            for rank, node in enumerate([first, first, second, second])
        ]
    nothing_is_left(slurm, start_request.folder)


@pytest.mark.slow
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
    scenario = replace(
        start_request.scenario, hardware=Hardware("GB200", 2, 2), launch=Launch("srun")
    )
    with SlurmLauncher().placed(replace(start_request, scenario=scenario)) as placement:
        command = placement.launched(python(code), scenario, Locations())
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
time.sleep(600)
"""


@pytest.mark.slow
class TestEnds:
    def test_a_program_is_asked_to_end_before_it_is_killed(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(python(POLITE), start_request.folder, "server") as job,
        ):
            eventually(lambda: "ready" in job.stdout.read_text())
            ended = job.stop(grace_s=30)
        assert (ended.reason, ended.status) == ("stopped", 0)
        assert job.stdout.read_text() == "ready\nends politely\n"
        nothing_is_left(slurm, start_request.folder)

    def test_a_program_that_does_not_listen_is_killed(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        deaf = POLITE.replace("sys.exit(0)", "pass")
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(python(deaf), start_request.folder, "server") as job,
        ):
            eventually(lambda: "ready" in job.stdout.read_text())
            ended = job.stop(grace_s=0.5)
        assert ended.reason == "stopped"
        assert ended.status == -signal.SIGKILL
        nothing_is_left(slurm, start_request.folder)

    def test_the_evidence_of_a_hang_is_that_of_the_node(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        hangs = python("import time, sys; print('x', flush=True); time.sleep(600)  # it hangs here")
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(hangs, start_request.folder, "client") as job,
        ):
            eventually(lambda: "x" in job.stdout.read_text())
            assert job.wait(silence_s=0.5).reason == "silence"
            (node,) = nodes_of(placement)
        evidence = (start_request.folder / "client.evidence.txt").read_text()
        here, _, there = evidence.partition(f"on {node}:\n")
        assert "it wrote nothing for 0.5 s" in here
        assert "srun" in here
        assert "# it hangs here" in there
        assert "stacks:" in there
        assert list(start_request.folder.glob("client.evidence.txt.*")) == []
        nothing_is_left(slurm, start_request.folder)

    def test_evidence_of_a_lost_place_says_why_there_is_none(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        with (
            SlurmLauncher().placed(start_request) as placement,
            placement.start(
                python("import time; time.sleep(600)"), start_request.folder, "one"
            ) as job,
        ):
            slurm.run(("scancel", job_of(placement)))
            slurm.wait_for(job_of(placement))
            job.keep_evidence("to see")
        evidence = (start_request.folder / "one.evidence.txt").read_text()
        assert "no more from the nodes: " in evidence


@pytest.mark.slow
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
            f'*) kept+=("$word") ;; esac; done\nexec {_real_srun()} "${{kept[@]}}"\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")

    def _inside(self, start_request: PlacementRequest, site: SlurmSite) -> Locations:
        here = Locations(models=Path("/models"), source=Path("/source"))
        return SlurmLauncher(site).locations(here, start_request.scenario, None)

    def test_a_program_of_the_engine_is_asked_there(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        locations = self._inside(start_request, SlurmSite(container=BOX, options=("--comment=x",)))
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
        locations = self._inside(start_request, SlurmSite(container=BOX))
        with allocation(slurm, "-N1") as job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            answer = locations.ask(("printenv", "SLURM_JOB_ID"), 60, of_engine=True)
        assert answer.stdout == f"{job}\n"

    def test_a_program_that_takes_too_long_is_ended(
        self, start_request: PlacementRequest, slurm: Cluster
    ) -> None:
        locations = self._inside(start_request, SlurmSite(container=BOX))
        answer = locations.ask(("sleep", "600"), 0.5, of_engine=True)
        assert answer.status is None
        assert "no answer from sleep within 0.5 s" in answer.why
        nothing_is_left(slurm, Path("/tmp/perfgate-asked-"))

    def test_a_container_that_cannot_be_had_is_told(self, start_request: PlacementRequest) -> None:
        locations = self._inside(start_request, SlurmSite(container=BOX, partition="no-such"))
        with pytest.raises(RunError) as caught:
            locations.ask(("true",), 60, of_engine=True)
        assert caught.value.failure == "config_error"
        assert "nvalid partition" in str(caught.value)

    def test_without_a_container_everything_is_asked_here(
        self, start_request: PlacementRequest
    ) -> None:
        assert self._inside(start_request, SlurmSite()).inside is None


def _real_srun() -> str:
    from shutil import which

    return which("srun") or "srun"
