"""`perfgate scenarios command`: what a run would start, as a script or as JSON.

By another launcher than local: the calls of a fresh start as that one makes them. Nothing is
started or submitted.
"""

import argparse
import re
from pathlib import Path

from perfgate.cli.output import print_json, print_script, refuse_given
from perfgate.cli.scenario_choice import add_folder, build_of, load, shaped
from perfgate.core.measurement import Json
from perfgate.core.programs.command import Step
from perfgate.core.programs.locations import Locations
from perfgate.core.redaction import mask, mask_arguments, mask_environment
from perfgate.engines.base import EngineBuild, engine
from perfgate.judging.assembly.measured import inert_notes
from perfgate.launchers.site import load_site
from perfgate.plan import calls as plan
from perfgate.plan.container import container_of
from perfgate.plan.script import Readiness, script
from perfgate.scenarios.scenario import Scenario

_LOCAL = "local"
# Those of `launched_calls.PLACES`, which loads all of them.
OTHERS = ("docker", "mpirun", "slurm")
# Option → its default: what the launcher local alone takes, and what all others take.
_OF_LOCAL = {"--container": False, "--here": False, "--listen": None, "--format": "shell"}
_OF_OTHERS = {"--site": None}


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
        choices=sorted([_LOCAL, *OTHERS]),
        default=_LOCAL,
        help="whose calls; local: a script to run (default: local)",
    )
    add(
        "--site",
        type=Path,
        metavar="FILE",
        help="site file of a launcher other than local (default: a run's)",
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
    is_local = arguments.launcher == _LOCAL
    refused, takers = (_OF_OTHERS, [*OTHERS]) if is_local else (_OF_LOCAL, [_LOCAL])
    problem = f"only --launcher {', '.join(takers)} takes it"
    refuse_given(arguments, refused, problem, found=f"--launcher {arguments.launcher}")
    if not is_local:
        return _print_calls(arguments)
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
        notes += engine[scenario.engine.name]().known_limitations(scenario, build)
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


def _print_calls(arguments: argparse.Namespace) -> int:
    # It loads the three launchers, which no other verb needs.
    from perfgate.cli.scenarios.launched_calls import launched_calls

    site = load_site(arguments.site)
    for scenario in shaped(load(arguments.scenarios).scenarios, arguments.id, arguments.shape):
        build = build_of(scenario, arguments.engine_version)
        lines = launched_calls(arguments.launcher, scenario, build, site)
        print_script("\n".join(lines) + "\n")
    return 0
