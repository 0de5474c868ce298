"""`perfgate scenarios command`: what a run would start, as a script or as JSON.

By the launcher slurm: the job of a fresh start with its steps, printed and not submitted.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfgate.cli.output import print_json, print_script, refuse_given
from perfgate.cli.scenario_choice import add_folder, build_of, load, shaped
from perfgate.core.command import Step
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.redaction import mask, mask_arguments, mask_environment
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.judging.assembly.measured import inert_notes
from perfgate.launchers.site import SlurmSite, load_site
from perfgate.launchers.slurm.script import (
    JobSteps,
    RenderedJob,
    as_ranks,
    calls_srun,
    gres_of,
    render_job,
)
from perfgate.plan import calls as plan
from perfgate.plan.container import container_of
from perfgate.plan.script import Readiness, script
from perfgate.plan.shell_text import call, comment, commented, exports, quoted
from perfgate.plan.toolchain import BuildOverride, Toolchain, needs_server, toolchain_for
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

_FOLDER = Path("<RUN>")  # of the start's files; a run knows its own
_JOB = "<JOB>"

# Option → its default: what each launcher alone takes.
_OPTIONS_OF: dict[str, dict[str, object]] = {
    "local": {"--container": False, "--here": False, "--listen": None, "--format": "shell"},
    "slurm": {"--site": None},
}


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = verb.add_argument
    add("id", help="the scenario's id")
    add(
        "--engine-version",
        metavar="RELEASE",
        help="release to render for (default: the document's)",
    )
    add_folder(verb)
    add(
        "--launcher",
        choices=sorted(_OPTIONS_OF),
        default="local",
        help="local: calls; slurm: the job of a start (default: local)",
    )
    add(
        "--site",
        type=Path,
        metavar="FILE",
        help="site file of --launcher slurm (default: a run's)",
    )
    add("--container", action="store_true", help="run the engine in its release container")
    add(
        "--here",
        action="store_true",
        help="use the programs, folders and hosts of this machine",
    )
    add(
        "--shape",
        action="append",
        default=[],
        metavar="ISL/OSL",
        help="other lengths of an explore scenario; repeatable",
    )
    add(
        "--listen",
        metavar="ADDRESS",
        type=_address,
        help="where the server listens, without a key (default: documented; localhost for all)",
    )
    add("--format", choices=["shell", "json"], default="shell", help="for people, or for scripts")
    verb.set_defaults(execute=_command)


def _command(arguments: argparse.Namespace) -> int:
    found = f"--launcher {arguments.launcher}"
    for launcher in _OPTIONS_OF.keys() - {arguments.launcher}:
        problem = f"only --launcher {launcher} takes it"
        refuse_given(arguments, _OPTIONS_OF[launcher], problem, found=found)
    if arguments.launcher == "slurm":
        return _print_jobs(arguments)
    locations = Locations.of_environment() if arguments.here else Locations(on_paper=True)
    made = []
    for scenario in shaped(load(arguments.scenarios).scenarios, arguments.id, arguments.shape):
        build = build_of(scenario, arguments.engine_version)
        if arguments.container:
            box = container_of(scenario, build)
            steps = plan.contained_steps(scenario, build, locations, box, arguments.listen)
        else:
            endpoint = plan.endpoint_of(scenario, build, locations, arguments.listen)
            steps = plan.steps(scenario, build, locations, endpoint)
        notes = (*plan.listen_notes(scenario, arguments.listen), *inert_notes(scenario))
        notes += engine[scenario.engine.name]().foreseen(scenario, build)
        made.append((scenario, build, steps, notes))
    if arguments.format == "json":
        plain = [_plain(*one) for one in made]
        print_json(plain[0] if len(plain) == 1 else plain)
        return 0
    for scenario, build, steps, notes in made:
        url = plan.health_url(scenario, build, locations, arguments.listen)
        answer_s = engine[scenario.engine.name]().health_within_s
        ready = Readiness(url, scenario.limits.start_s, answer_s)
        print_script(script(scenario, build, steps, ready, notes))
    return 0


def _address(text: str) -> str:
    """A host name or an address.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not re.fullmatch(r"[A-Za-z0-9:\[][A-Za-z0-9.:\[\]_%-]*", text):
        raise argparse.ArgumentTypeError(f"not a host name or an address: {text!r}")
    return text


def _plain(
    scenario: Scenario, build: EngineBuild, steps: tuple[Step, ...], notes: tuple[str, ...]
) -> dict[str, Json]:
    return {
        "scenario": scenario.id,
        "engine": build.name,
        "engine_version": build.version,
        "notes": list(notes),
        "steps": [
            {
                "role": step.role,
                "probe": step.probe,
                "argv": [*mask_arguments(step.command.argv)],
                "env": {**mask_environment(step.command.env)},
                "files": {name: mask(text) for name, text in step.command.files.items()},
                "stdout": step.command.stdout,
            }
            for step in steps
        ],
    }


def _print_jobs(arguments: argparse.Namespace) -> int:
    site = load_site(arguments.site).slurm
    for scenario in shaped(load(arguments.scenarios).scenarios, arguments.id, arguments.shape):
        build = build_of(scenario, arguments.engine_version)
        limits = scenario.limits
        seconds = limits.start_s + len(all_probes(scenario)) * limits.total_s
        rendered = render_job(scenario, site, _FOLDER, seconds)
        print_script("\n".join(_slurm_lines(scenario, build, site, rendered)) + "\n")
    return 0


def _slurm_lines(
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
    for step, argv in _slurm_steps(scenario, build, site):
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


def _slurm_steps(
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
