"""Commands as launchers start them: of two builds, and as `scenarios command` prints them.

What is printed is what is run, for every documented scenario. Places are set equal: names of
containers and nodes, folders, the port, who the user is.
"""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.files.paths import repository
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Installation, Locations
from perfgate.core.programs.programs import MPIRUN, TRTLLM_BENCH, TRTLLM_LAUNCH
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.checkout import IMAGE_SOURCES
from perfgate.launchers.docker.containers import ContainerSettings, run_words
from perfgate.launchers.docker.launcher import image_of
from perfgate.launchers.mpirun.launcher import by_mpirun, started_by
from perfgate.launchers.site import DockerSite, MpirunSite, SlurmContainer, SlurmSite
from perfgate.launchers.slurm.launcher import SlurmLauncher
from perfgate.launchers.slurm.script import JobSteps, as_ranks, asking_argv
from perfgate.plan import calls
from perfgate.plan.container import WORKDIR, container_of
from perfgate.plan.srun import container_options
from perfgate.plan.toolchain import toolchain_for
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Hardware, Launch, Scenario

PAPER, HERE = Locations(on_paper=True), Path(WORKDIR)
SUITE = load_scenarios(repository() / "scenarios")
ALONE = [one for one in SUITE if one.engine.name == "tensorrt-llm" and one.launch is None]
LAUNCHED = [one for one in SUITE if one.launch is not None]
ENGINE = Command(("trtllm-bench", "throughput"), env={"TRTLLM_ENABLE_PDL": "1"})
# Words that are of the place, or of perfgate's own cleaning up.
PRINTED = {"-p", "~/.cache:/root/.cache:rw", f".:{WORKDIR}"}
RUN = {"--network", "host", f"{WORKDIR}:{WORKDIR}", "n", "--init", "--pull", "never"}


@each("scenario", ALONE, ids=attrgetter("id"))
def test_docker(scenario: Scenario) -> None:
    version = scenario.source.engine_version or "1.2.0"
    build = EngineBuild(scenario.engine.name, version, version)
    box = container_of(scenario, build)
    site = DockerSite(user=None, cache=None, pass_on=())
    settings = ContainerSettings(image_of(scenario, site, version), site, has_gpus=True)
    endpoint = replace(calls.endpoint_of(scenario, build, PAPER), host="0.0.0.0")  # noqa: S104
    inside = calls.steps(scenario, build, replace(PAPER, source=IMAGE_SOURCES), endpoint)
    named = {(one.role, one.probe): one.command for one in inside}
    printed = calls.contained_steps(scenario, build, PAPER, box)
    steps = [one for one in printed if one.command.argv[:2] == ("docker", "run")]
    assert steps
    for step in steps:
        command = replace(named[step.role, step.probe], cwd=HERE)
        run, theirs = run_words(settings, command, "n", {}), step.command.argv[1:]
        at, there = run.index(box.image), theirs.index(box.image)
        assert run[at:] == theirs[there:]
        ours, others = {*run[:at]}, {*theirs[:there]}
        port = f"127.0.0.1:{endpoint.port}:{endpoint.port}"
        assert others - ours == {*PRINTED, port, box.name}
        assert ours - others - {"-e"} == {*RUN, "PERFGATE_LAUNCH"}


@each("scenario", LAUNCHED, ids=attrgetter("id"))
def test_srun_and_mpirun(scenario: Scenario) -> None:
    nodes = tuple(f"<HOST{number}>" for number in range(1, scenario.hardware.nodes + 1))
    launch = replace(scenario.launch, output=None, time_limit=None)
    by = {way: replace(scenario, launch=replace(launch, by=way)) for way in ("srun", "mpirun")}
    ranks = as_ranks(ENGINE, scenario, PAPER, SlurmSite(), nodes)
    handed = replace(ENGINE, env={**launch.pass_on, **ENGINE.env})
    assert ranks == (printed := wrapped(handed, by["srun"], PAPER))
    step = JobSteps("7", SlurmSite()).call(ranks.argv, "server", HERE)
    assert step[-len(printed.argv) + 1 :] == printed.argv[1:], "what a run adds stands before"
    port = launch.ssh_port
    ranks = by_mpirun(ENGINE, scenario, PAPER, port)
    place = {"ssh_port": port, "mark": "m", "environment": (), "root": False}
    whole = started_by(("mpirun",), ranks, HERE, "n1", MpirunSite(), **place)
    printed = wrapped(ENGINE, by["mpirun"], PAPER)
    output = ("--output-filename", scenario.launch.output)
    given = [word for word in whole if word not in output]
    assert given[-len(printed.argv) + 1 :] == [*printed.argv[1:]], "what a run adds stands before"


@each("scenario", [one for one in LAUNCHED if one.container], ids=attrgetter("id"))
def test_pyxis(scenario: Scenario) -> None:
    printed = container_options(ENGINE, scenario, PAPER)
    site = SlurmSite(container=SlurmContainer(printed[0].partition("=")[2]))
    steps = JobSteps("7", site).call(("srun", "x"), "server", HERE, tuple(ENGINE.env))
    begin = steps.index(printed[0])
    run = [word.replace(f"{WORKDIR}:", "./:") for word in steps[begin : begin + len(printed)]]
    assert run == printed


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
    its_own = [f"{old}/bin/{name}" for name in ("trtllm-llmapi-launch", "trtllm-bench")]
    assert launched.argv[-3:] == (*its_own, "throughput")
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
    called = ("n1",), "server", Path("/run")
    sites = (tested.site, control.site, tested.site)
    steps = [JobSteps("7", site).srun(*called, contained=("A",)) for site in sites]
    assert [images(one) for one in steps] == [["own#tested:2"], [OLD], ["own#tested:2"]]
    assert all("--jobid=7" in one for one in steps)
    without = [[word for word in one if "--container-image" not in word] for one in steps]
    assert without[0] == without[1]
    options = ("--container-image=" + OLD, "--container-mounts=/models:/models,/run:/run")
    assert steps[1][-5:] == (*options, "--container-workdir", "/run", "--container-env=A")
    assert images(JobSteps("7", tested.site).srun(("n1",), "client", Path("/run"))) == []


def test_each_is_asked_in_its_own_image_and_both_for_no_node_that_failed() -> None:
    """A site without a container can start another build in one."""
    tested = SlurmLauncher(SlurmSite())
    control = tested.with_image(OLD)
    assert (tested.runtime, control.runtime) == ("none", "pyxis")
    tools = toolchain_for(SCENARIO, Locations())
    assert tested.locations(tools).inside is None
    where = control.locations(tools).inside
    assert images(asking_argv(where.site, (), {}, 60.0)) == [OLD]
    tested.bad.add("n3")
    assert control.bad == {"n3"}
