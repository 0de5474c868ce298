"""`perfgate doctor`: what this machine can run, and why not the rest."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.commands.output import add_format, print_json, print_table

if TYPE_CHECKING:
    from perfgate.hardware import Machine
    from perfgate.scenarios.scenario import Scenario


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this command's parser."""
    command = commands.add_parser(
        "doctor", help="what this machine can run, and why not the rest", description=__doc__
    )
    command.add_argument("--scenario", help="only this one; exit status 1 if it cannot run here")
    command.add_argument("--scenarios", type=Path, help="folder of scenario files")
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from perfgate.hardware import detect
    from perfgate.paths import repository
    from perfgate.scenarios.files import load_scenarios
    from perfgate.scenarios.selection import pick

    machine = detect()
    scenarios = load_scenarios(arguments.scenarios or repository() / "scenarios")
    if arguments.scenario:
        scenarios = (pick(scenarios, arguments.scenario),)
    reasons = {scenario.id: _why_not(scenario, machine) for scenario in scenarios}
    if arguments.format == "json":
        print_json({"machine": asdict(machine), "cannot_run": reasons})
    else:
        gpus = ", ".join(gpu.name for gpu in machine.gpus) or f"none ({machine.gpu_note})"
        print(f"machine: {machine.host}, {machine.cores} cores of {machine.cpu}")
        print(f"memory: {machine.memory_bytes / 2**30:.1f} GiB; GPUs: {gpus}\n")
        print_table(
            ("scenario", "can run here"),
            [
                (name, "yes" if reason is None else f"no: {reason}")
                for name, reason in reasons.items()
            ],
        )
    return 1 if arguments.scenario and any(reasons.values()) else 0


def _why_not(scenario: "Scenario", machine: "Machine") -> str | None:
    from perfgate.errors import PerfgateError
    from perfgate.tools import tools_for

    lacking = machine.lacks(scenario.hardware, scenario.launch)
    if lacking:
        return lacking
    try:
        tools_for(scenario).require()
    except PerfgateError as error:
        return " ".join(str(error).split())
    return None
