"""Launched calls: the programs of a fresh start as docker, mpirun or slurm starts them.

They come from what a run makes them with; what only a run knows is a placeholder. Nothing is
started: all but the script of Slurm's job is in comments.
"""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm.checkout import IMAGE_SOURCES
from perfgate.launchers.docker import containers
from perfgate.launchers.docker.launcher import EVERYWHERE, image_of
from perfgate.launchers.mpirun.launcher import by_mpirun, started_by
from perfgate.launchers.site import Site
from perfgate.launchers.slurm.script import JobSteps, as_ranks, calls_srun, gres_of, render_job
from perfgate.plan import calls as plan
from perfgate.plan.shell_text import call, comment, commented, exports, quoted
from perfgate.plan.toolchain import BuildOverride, Toolchain, needs_server, toolchain_for
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

_RUN, _JOB, _MARK = Path("<RUN>"), "<JOB>", "<MARK>"  # a run knows its folder, its job and its mark
_CONTAINER = "perfgate-{}-<ID>"
_PAPER = Locations(on_paper=True)

# Whether a program has the engine inside, comes with it, or neither.
_Kind = Literal["engine", "with_engine", "other"]


@dataclass(frozen=True)
class _Start:
    """What is started, and what holds at the site."""

    scenario: Scenario
    build: EngineBuild
    site: Site


@dataclass(frozen=True)
class _Place:
    """Where a launcher starts programs.

    Attributes:
        host: where the server listens.
        launched: a step, its kind and its folder → its command as it is launched there.
        listen: what the site says of servers that other machines reach.
        locations: where programs are.
        job: lines of a job that holds the place.
    """

    host: str
    launched: Callable[[Step, _Kind, Path], Command]
    listen: str | None
    locations: Locations = _PAPER
    job: tuple[str, ...] = ()


def launched_calls(
    launcher: str, scenario: Scenario, build: EngineBuild, site: Site
) -> Iterator[str]:
    """The lines of a script: the job of Slurm, if it is one, and all calls as comments.

    Args:
        launcher: one of `PLACES`.
        scenario: what is started.
        build: the release that it is rendered for.
        site: what holds here.

    Raises:
        InputError: the launcher cannot start the scenario, or the release cannot do it.
    """
    place = PLACES[launcher](_Start(scenario, build, site))
    yield "#!/bin/sh"
    yield comment(f"{scenario.id}: {scenario.title}")
    yield from place.job
    yield ""
    if needs_server(scenario) and place.listen is None:
        why = "the server listens at that node's address. It"
        yield f"# Unless perfgate runs on {place.host}, {why}"
        yield f"# asks for no key: whoever reaches it can use it ({launcher}.listen in site.yaml)."
        yield ""
    programs = "The programs are steps of it" if place.job else "A run starts these programs"
    yield comment(f"{programs}, for {build.name} {build.version}:")
    tools = toolchain_for(scenario, place.locations, BuildOverride(build.version, build.commit))
    model = tools.engine.served_model(scenario, place.locations)
    endpoint = Endpoint(place.host, plan.LISTEN.port, model)
    offline = {probe.label for probe in all_probes(scenario) if tools.is_offline(probe)}
    unlaunched = replace(scenario, launch=None)  # its ranks are launched by the launcher
    for step in plan.steps(unlaunched, build, place.locations, endpoint):
        command = step.command
        if command.argv[0] != "curl":  # perfgate itself asks
            command = place.launched(step, _kind(step, tools, offline), _RUN / (step.probe or ""))
        yield "#"
        yield comment(step.role + (f" of {step.probe}" if step.probe else ""))
        for name, text in command.files.items():
            yield comment(f"  with {name}:")
            yield from commented(text.removesuffix("\n"), "    ")
        line = call(command.argv, indent="")
        line += f" > {quoted(command.stdout)}" if command.stdout is not None else ""
        yield from commented("\n".join([*exports(command.env), line]))


def _in_containers(start: _Start) -> _Place:
    site, scenario = start.site.docker, start.scenario
    image = image_of(scenario, site, start.build.version)
    box = containers.ContainerSettings(image, site, scenario.hardware.gpu != "none", (_RUN,))
    is_shared = site.network == containers.HOST_NETWORK

    def launched(step: Step, kind: _Kind, folder: Path) -> Command:
        if kind == "other":
            return step.command
        joins = step.role == "client" and not is_shared
        words = containers.run_words(
            box,
            replace(step.command, cwd=folder),
            _CONTAINER.format(step.role),
            os.environ,
            network=f"container:{_CONTAINER.format('server')}" if joins else site.network,
            port=plan.LISTEN.port if step.role == "server" and not is_shared else None,
        )
        return replace(step.command, argv=("docker", *words))

    host = containers.LOOPBACK if is_shared else EVERYWHERE
    return _Place(host, launched, containers.LOOPBACK, replace(_PAPER, source=IMAGE_SOURCES))


def _on_hosts(start: _Start) -> _Place:
    site, scenario, host = start.site.mpirun, start.scenario, "<HOST1>"
    ssh_port = site.ssh_port or (scenario.launch.ssh_port if scenario.launch else None)

    def launched(step: Step, kind: _Kind, folder: Path) -> Command:
        command = step.command
        if kind == "engine":
            command = by_mpirun(command, scenario, _PAPER, ssh_port)
        elif site.clients != "beside":
            return command
        argv = started_by(
            ("mpirun",),
            command,
            folder,
            host,
            site,
            ssh_port=ssh_port,
            mark=_MARK,
            environment=os.environ,
            root=os.geteuid() == 0,
        )
        return replace(command, argv=argv)

    return _Place(host, launched, site.listen)


def _in_a_job(start: _Start) -> _Place:
    site, scenario = start.site.slurm, start.scenario
    nodes = [f"<NODE{number}>" for number in range(1, scenario.hardware.nodes + 1)]
    steps = JobSteps(_JOB, site)

    def launched(step: Step, kind: _Kind, folder: Path) -> Command:
        command, has_engine = step.command, kind == "engine"
        if has_engine:
            command = as_ranks(command, scenario, _PAPER, site, nodes)
        boxed = has_engine or (kind == "with_engine" and site.container is not None)
        contained = tuple(command.env) if boxed else None
        if calls_srun(command.argv):
            argv = steps.call(command.argv, step.role, folder, contained or ())
            return replace(command, argv=argv)
        if contained is None and site.clients == "login":
            return command
        gres = gres_of(site, scenario.hardware) if has_engine else None
        before = steps.srun(nodes[:1], step.role, folder, gres=gres, contained=contained)
        return replace(command, argv=(*before, *command.argv))

    limits = scenario.limits
    seconds = limits.start_s + len(all_probes(scenario)) * limits.total_s
    rendered = render_job(scenario, site, _RUN, seconds)
    _, *script = rendered.script_text.removesuffix("\n").split("\n")
    job = ["# This job holds the nodes of one fresh start. A run submits it by:"]
    job += [*commented(call(rendered.argv, indent="")), *script]
    return _Place(nodes[0], launched, site.listen, job=tuple(job))


PLACES = {"docker": _in_containers, "mpirun": _on_hosts, "slurm": _in_a_job}


def _kind(step: Step, tools: Toolchain, offline: Collection[str]) -> _Kind:
    """What a step's program has to do with the engine; `offline`: probes whose program holds it."""
    load = tools.scenario.workload
    if step.role == "prepare_dataset":
        return "with_engine"
    if step.role == "server" or step.probe in offline:
        return "engine"
    if step.role == "client" and load is not None:
        comes_with_it = getattr(tools.clients[load.client], "of_engine", False)
        return "with_engine" if comes_with_it else "other"
    return "other"
