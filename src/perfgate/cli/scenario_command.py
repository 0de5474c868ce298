"""`perfgate scenarios command`: what a run would start, as a script or as JSON."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfgate.core.measurement import Json
    from perfgate.core.steps import Step
    from perfgate.engines.base import EngineBuild
    from perfgate.scenarios.scenario import Scenario


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this verb's parser."""
    verb = verbs.add_parser("command", help="what a run would start, as a script or as JSON")
    add_scenario(verb)
    verb.add_argument(
        "--container", action="store_true", help="the engine in its release container, by Docker"
    )
    verb.add_argument(
        "--here",
        action="store_true",
        help="with the programs, folders and hosts of this machine (default: as on paper)",
    )
    verb.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="ISL/OSL",
        help="other lengths, for a scenario to explore with, e.g. 4096/512; may be given again",
    )
    verb.add_argument("--scenarios", type=Path, help="folder of scenario files")
    verb.add_argument(
        "--format", choices=["shell", "json"], default="shell", help="for people, or for scripts"
    )
    verb.set_defaults(execute=_command)


def add_scenario(verb: argparse.ArgumentParser) -> None:
    """Which scenario, and by which release of its engine; `shaped` and `build_of` read it."""
    verb.add_argument("id")
    verb.add_argument(
        "--engine-version",
        metavar="RELEASE",
        help="release whose spelling is used (default: the one of the scenario's document)",
    )


def load(folder: Path | None) -> "tuple[Scenario, ...]":
    """The scenarios of `folder`, or the suite's.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files.
    """
    from perfgate.core.paths import repository
    from perfgate.scenarios.files import load_scenarios

    return load_scenarios(folder or repository() / "scenarios")


def _command(arguments: argparse.Namespace) -> int:
    from perfgate.core.locations import Locations
    from perfgate.plan import calls as plan
    from perfgate.plan.container import container_of
    from perfgate.plan.script import Readiness, script

    locations = Locations.of_environment() if arguments.here else Locations(on_paper=True)
    chosen = shaped(load(arguments.scenarios), arguments.id, arguments.shape)
    made = []
    for scenario in chosen:
        build = build_of(scenario, arguments.engine_version)
        if arguments.container:
            box = container_of(scenario, build)
            steps = plan.contained_steps(scenario, build, locations, box)
        else:
            steps = plan.steps(scenario, build, locations)
        made.append((scenario, build, steps))
    if arguments.format == "json":
        plain = [_plain(*one) for one in made]
        print_json(plain[0] if len(plain) == 1 else plain)
        return 0
    for scenario, build, steps in made:
        ready = Readiness(plan.health_url(scenario, build, locations), scenario.limits.start_s)
        print(script(scenario, build, steps, ready), end="")
    return 0


def shaped(
    scenarios: "Sequence[Scenario]", name: str, shapes: "Sequence[str]"
) -> "tuple[Scenario, ...]":
    """The scenario of that name, or one for each asked shape of it.

    Raises:
        InputError: there is no such scenario, or it is none to explore with.
    """
    from perfgate.core.errors import InputError
    from perfgate.scenarios.exploration import EXPLORE, explored, parse_shape
    from perfgate.scenarios.selection import pick

    scenario = pick(scenarios, name)
    if shapes and EXPLORE not in scenario.markers:
        raise InputError(
            "this scenario has the lengths of its document",
            field="--shape",
            found=scenario.id,
            expected=f"a scenario marked {EXPLORE}",
            hint=f"`perfgate scenarios list -m {EXPLORE}` names them",
        )
    return explored([scenario], [parse_shape(text) for text in shapes])


def build_of(scenario: "Scenario", version: str | None) -> "EngineBuild":
    """The engine's build: the release asked for, else the document's, else the installed one."""
    from perfgate.core.locations import Locations
    from perfgate.engines.base import EngineBuild, engine

    version = version or scenario.source.engine_version
    if version is None:
        return engine[scenario.engine.name]().build(Locations.of_environment())
    return EngineBuild(scenario.engine.name, version, version)


def _plain(
    scenario: "Scenario", build: "EngineBuild", steps: "tuple[Step, ...]"
) -> "dict[str, Json]":
    from perfgate.core.secrets import mask_environment

    return {
        "scenario": scenario.id,
        "engine": build.name,
        "engine_version": build.version,
        "steps": [
            {
                "role": step.role,
                "probe": step.probe,
                "argv": list(step.command.argv),
                "env": dict(mask_environment(step.command.env)),
                "files": dict(step.command.files),
                "stdout": step.command.stdout,
            }
            for step in steps
        ],
    }
