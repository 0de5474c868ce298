"""What `scenarios command` prints is what a launcher runs, for every documented scenario.

Places are set equal: names of containers and nodes, folders, the port, who the user is.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tables import each

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.paths import repository
from perfgate.engines.base import EngineBuild
from perfgate.launchers.docker.containers import ContainerSettings, run_words
from perfgate.launchers.docker.launcher import image_of
from perfgate.launchers.mpirun.launcher import by_mpirun, started_by
from perfgate.launchers.site import DockerSite, MpirunSite, SlurmContainer, SlurmSite
from perfgate.launchers.slurm.script import JobSteps, as_ranks
from perfgate.plan import calls
from perfgate.plan.container import WORKDIR, container_of
from perfgate.plan.slurm_container import container_options
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

PAPER = Locations(on_paper=True)
SUITE = load_scenarios(repository() / "scenarios")
ALONE = [one for one in SUITE if one.engine.name == "tensorrt-llm" and one.launch is None]
LAUNCHED = [one for one in SUITE if one.launch is not None]
ENGINE = Command(("trtllm-bench", "throughput"), env={"TRTLLM_ENABLE_PDL": "1"})
# Options of docker run that are of the place or of perfgate's own cleaning up, with a value or not.
OF_THE_PLACE = {"-p", "--user", "--network", "--name", "-v", "--label", "--pull", "--init"}
WITHOUT_VALUE = {"--rm", "--init"}


def id_of(scenario: Scenario) -> str:
    return scenario.id


def build_of(scenario: Scenario) -> EngineBuild:
    version = scenario.source.engine_version or "1.2.0"
    return EngineBuild(scenario.engine.name, version, version)


@dataclass(frozen=True)
class Run:
    """A call of `docker run`, read."""

    options: tuple[tuple[str, str], ...]
    after: tuple[str, ...]  # the image, the program and its arguments

    def without_places(self) -> "Run":
        kept = [(name, value) for name, value in self.options if name not in OF_THE_PLACE]
        return Run(tuple(sorted(kept)), self.after)


def read(words: tuple[str, ...], image: str) -> Run:
    """The words after Docker's program."""
    end = words.index(image)
    options: list[tuple[str, str]] = []
    rest = [*words[1:end]]
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        has_value = not equals and name not in WITHOUT_VALUE
        options.append((name, rest.pop(0) if has_value else value))
    return Run(tuple(options), words[end:])


@each("scenario", ALONE, ids=id_of)
def test_docker(scenario: Scenario) -> None:
    build = build_of(scenario)
    box = container_of(scenario, build)
    printed = calls.contained_steps(scenario, build, PAPER, box)
    cwd = Path(WORKDIR)
    site = DockerSite(user=None, pass_on=())
    settings = ContainerSettings(image_of(scenario, site, build.version), site, has_gpus=True)
    endpoint = replace(calls.endpoint_of(scenario, build, PAPER), host="0.0.0.0")  # noqa: S104
    inside = replace(PAPER, source=Path("/app/tensorrt_llm"))
    plain = calls.steps(scenario, build, inside, endpoint)
    named = {(one.role, one.probe): one.command for one in plain}
    looked_at = 0
    for step in printed:
        if step.command.argv[:2] != ("docker", "run"):
            continue
        looked_at += 1
        command = replace(named[step.role, step.probe], cwd=cwd)
        run = run_words(settings, command, "perfgate-1", {}, labels=("--label", "a=b"))
        theirs = read(step.command.argv[1:], box.image)
        ours = read(run, box.image)
        mark = ("-e", "PERFGATE_LAUNCH")
        assert mark in ours.options
        ours = Run(tuple(one for one in ours.options if one != mark), ours.after)
        assert ours.without_places() == theirs.without_places()
        assert f"{WORKDIR}:{WORKDIR}" in {value for name, value in ours.options if name == "-v"}
    assert looked_at


@each("scenario", LAUNCHED, ids=id_of)
def test_srun(scenario: Scenario) -> None:
    assert scenario.launch is not None
    nodes = tuple(f"<HOST{number}>" for number in range(1, scenario.hardware.nodes + 1))
    launch = replace(scenario.launch, by="srun", output=None, time_limit=None)
    command = replace(ENGINE, env={**launch.pass_on, **ENGINE.env})
    printed = wrapped(command, replace(scenario, launch=launch), PAPER)
    run = as_ranks(ENGINE, scenario, PAPER, SlurmSite(), nodes)
    assert run == printed
    step = JobSteps("7", SlurmSite()).call(run.argv, "server", Path("/runs"))
    assert step[-len(printed.argv) + 1 :] == printed.argv[1:], "what a run adds stands before"


@pytest.mark.parametrize("scenario", [one for one in LAUNCHED if one.container], ids=id_of)
def test_pyxis(scenario: Scenario) -> None:
    printed = container_options(ENGINE, scenario, PAPER)
    image = printed[0].partition("=")[2]
    site = SlurmSite(container=SlurmContainer(image))
    steps = JobSteps("7", site).call(("srun", "x"), "server", Path(WORKDIR), tuple(ENGINE.env))
    begin = steps.index(printed[0])
    run = [word.replace(f"{WORKDIR}:", "./:") for word in steps[begin : begin + len(printed)]]
    assert run == printed


@each("scenario", LAUNCHED, ids=id_of)
def test_mpirun(scenario: Scenario) -> None:
    assert scenario.launch is not None
    port = scenario.launch.ssh_port
    launch = replace(scenario.launch, by="mpirun", output=None, ssh_port=port, time_limit=None)
    printed = wrapped(ENGINE, replace(scenario, launch=launch), PAPER)
    run = by_mpirun(ENGINE, replace(scenario, launch=launch), PAPER, port)
    assert run == printed
    whole = started_by(
        ("mpirun",),
        run,
        Path("/runs"),
        "n1",
        MpirunSite(),
        ssh_port=port,
        mark="m",
        environment=(),
        root=False,
    )
    assert whole[-len(printed.argv) + 1 :] == printed.argv[1:], "what a run adds stands before"
