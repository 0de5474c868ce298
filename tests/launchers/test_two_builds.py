"""Two builds of one scenario: what mpirun and srun are told of each. Nothing is started."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO

from perfgate.core.command import Command
from perfgate.core.locations import Installation, Locations
from perfgate.core.programs import MPIRUN, TRTLLM_BENCH, TRTLLM_LAUNCH
from perfgate.launchers.mpirun.launcher import by_mpirun, started_by
from perfgate.launchers.site import MpirunSite, SlurmContainer, SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.launchers.slurm.script import JobSteps, asking_argv
from perfgate.scenarios.scenario import Hardware, Launch

TWO_NODES = replace(SCENARIO, hardware=Hardware("H200", 16, 2), launch=Launch("mpirun"))


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prefix of an old build; the one under test is in the environment."""
    for folder in ("old", "tested"):
        (tmp_path / folder / "bin").mkdir(parents=True)
        for program in (TRTLLM_BENCH, TRTLLM_LAUNCH, MPIRUN):
            file = tmp_path / folder / "bin" / program.executable
            file.write_text("#!/bin/sh\n")
            file.chmod(0o755)
            monkeypatch.setenv(program.variable, str(tmp_path / "tested/bin" / program.executable))
    return tmp_path / "old"


def test_every_rank_runs_the_other_builds_programs(old: Path) -> None:
    where = Locations(hosts=("n1", "n2"), build=Installation(str(old)))
    command = Command((*where.find(TRTLLM_BENCH), "throughput"), where.engine_environment)
    launched = by_mpirun(command, TWO_NODES, where, None)
    assert launched.argv[0] == str(old.parent / "tested/bin/mpirun"), "what starts both is the same"
    assert launched.argv[-3:] == (
        *(f"{old}/bin/trtllm-llmapi-launch", f"{old}/bin/trtllm-bench", "throughput"),
    )
    place = {"ssh_port": None, "mark": "m", "environment": {"PATH"}, "root": False}
    argv = started_by(MPIRUN.find(), launched, Path("/run"), "n1", MpirunSite(), **place)
    assert argv[argv.index("PATH") - 1] == "-x"
    assert launched.env["PATH"].startswith(f"{old}/bin:")


SITE = SlurmSite(container=SlurmContainer("own#tested:2", ("/models:/models",)), partition="b200")
OLD = "/images/old.sqsh"


def images(argv: tuple[str, ...]) -> list[str]:
    return [word.partition("=")[2] for word in argv if word.startswith("--container-image=")]


def test_each_starts_its_own_image_in_the_same_job_with_the_sites_mounts() -> None:
    tested = SlurmLauncher(SITE)
    control = tested.with_image(OLD)
    steps = [
        JobSteps("7", one.site).srun(("n1",), "server", Path("/run"), contained=("A",))
        for one in (tested, control, tested)
    ]
    assert [images(one) for one in steps] == [["own#tested:2"], [OLD], ["own#tested:2"]]
    assert all("--jobid=7" in one for one in steps)
    without = [[word for word in one if "--container-image" not in word] for one in steps]
    assert without[0] == without[1]
    assert steps[1][-5:] == (
        *("--container-image=" + OLD, "--container-mounts=/models:/models,/run:/run"),
        *("--container-workdir", "/run", "--container-env=A"),
    )
    assert images(JobSteps("7", tested.site).srun(("n1",), "client", Path("/run"))) == []


def test_each_is_asked_in_its_own_image_and_both_for_no_node_that_failed() -> None:
    """A site without a container can start another build in one."""
    tested = SlurmLauncher(SlurmSite())
    control = tested.with_image(OLD)
    assert (tested.runtime, control.runtime) == ("none", "pyxis")
    assert tested.locations(Locations(), SCENARIO, None).inside is None
    where = control.locations(Locations(), SCENARIO, None).inside
    assert images(asking_argv(where.site, (), {}, 60.0)) == [OLD]
    tested.bad.add("n3")
    assert control.bad == {"n3"}
