"""`perfgate scenarios job`: the Slurm job of a fresh start, printed and not handed in."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfgate.cli.output import print_script
from perfgate.cli.scenario_choice import add_scenario, build_of, load, shaped
from perfgate.core.locations import Locations
from perfgate.core.steps import Step
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.launchers.site import SlurmSite, load_site
from perfgate.launchers.slurm.script import (
    JobSteps,
    RenderedJob,
    as_ranks,
    calls_srun,
    gres_of,
    render_job,
    request_for,
)
from perfgate.plan import calls as plan
from perfgate.plan.shell_text import call, comment, commented, exports, quoted
from perfgate.plan.toolchain import BuildOverride, Toolchain, needs_server, toolchain_for
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

_FOLDER = Path("<RUN>")  # of the start's files; a run knows its own
_JOB = "<JOB>"


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add_scenario(verb)
    verb.add_argument(
        "--shape", metavar="ISL/OSL", help="other lengths, for a scenario to explore with"
    )
    verb.add_argument(
        "--site", type=Path, metavar="FILE", help="the site file (default: as a run finds it)"
    )
    verb.set_defaults(execute=_job)


def _job(arguments: argparse.Namespace) -> int:
    shapes = [arguments.shape] if arguments.shape else []
    (scenario,) = shaped(load(arguments.scenarios).scenarios, arguments.id, shapes)
    build = build_of(scenario, arguments.engine_version)
    site = load_site(arguments.site).slurm
    limits = scenario.limits
    seconds = limits.start_s + len(all_probes(scenario)) * limits.total_s
    rendered = render_job(request_for(scenario, site, _FOLDER, seconds), site)
    print_script("\n".join(_lines(scenario, build, site, rendered)) + "\n")
    return 0


def _lines(
    scenario: Scenario, build: EngineBuild, site: SlurmSite, rendered: RenderedJob
) -> Iterator[str]:
    """The script, with what is done around it in comments."""
    shebang, *script = rendered.script_text.removesuffix("\n").split("\n")
    yield shebang
    yield comment(f"{scenario.id}: {scenario.title}")
    yield "# This job holds the nodes of one fresh start. A run submits it by:"
    yield from _commented(rendered.argv)
    yield from script
    yield ""
    if needs_server(scenario) and site.listen is None:
        yield "# Unless perfgate runs on <NODE1>, the server listens at that node's address. It"
        yield "# asks for no key: whoever reaches it can use it (slurm.listen in site.yaml)."
        yield ""
    yield comment(f"The programs are steps of it, for {build.name} {build.version}:")
    for step, argv in _steps(scenario, build, site):
        yield "#"
        yield comment(step.role + (f" of {step.probe}" if step.probe else ""))
        for name, text in step.command.files.items():
            yield comment(f"  with {name}:")
            yield from commented(text.removesuffix("\n"), "    ")
        yield from _commented(argv, step)


def _commented(argv: tuple[str, ...], step: Step | None = None) -> Iterator[str]:
    lines = exports(step.command.env) if step is not None else []
    lines.append(call(argv, indent=""))
    if step is not None and step.command.stdout is not None:
        lines[-1] += f" > {quoted(step.command.stdout)}"
    yield from commented("\n".join(lines))


def _steps(
    scenario: Scenario, build: EngineBuild, site: SlurmSite
) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Each program call, and how it is started in the job."""
    locations = Locations(on_paper=True)
    tools = toolchain_for(scenario, locations, BuildOverride(build.version, build.commit))
    nodes = [f"<NODE{number}>" for number in range(1, scenario.hardware.nodes + 1)]
    endpoint = Endpoint(nodes[0], plan.LISTEN.port, tools.engine.served_model(scenario, locations))
    steps = JobSteps(_JOB, site)
    alone = replace(scenario, launch=None)  # launched here, as the slurm launcher does
    for step in plan.steps(alone, build, locations, endpoint):
        command, folder = step.command, _FOLDER / (step.probe or "")
        if _has_engine(step, tools):
            command = as_ranks(command, scenario, locations, site, nodes)
            step = replace(step, command=command)
            contained: tuple[str, ...] | None = tuple(command.env)
            gres = gres_of(site, scenario.hardware)
        else:
            boxed = site.container is not None and _comes_with_engine(step, tools)
            contained = tuple(command.env) if boxed else None
            gres = None
        if command.argv[0] == "curl":  # perfgate itself asks
            yield step, command.argv
        elif calls_srun(command.argv):
            yield step, steps.call(command.argv, step.role, folder, contained or ())
        elif contained is None and site.clients == "login":
            yield step, command.argv
        else:
            before = steps.srun(nodes[:1], step.role, folder, gres=gres, contained=contained)
            yield step, (*before, *command.argv)


def _has_engine(step: Step, tools: Toolchain) -> bool:
    """Whether its program has the engine inside."""
    offline = {probe.label for probe in all_probes(tools.scenario) if tools.is_offline(probe)}
    return step.role == "server" or (step.role != "prepare_dataset" and step.probe in offline)


def _comes_with_engine(step: Step, tools: Toolchain) -> bool:
    load = tools.scenario.workload
    if step.role == "client" and load is not None:
        return bool(getattr(tools.clients[load.client], "of_engine", False))
    return step.role == "prepare_dataset"
