"""`perfgate doctor`: what this machine can run, and why not the rest.

Beside each scenario that cannot run stands the first reason, and what to do about it. With
--scenario: whether the machine is fit for that one; every check, what it found, how to fix it. With
-m: the same for all tests that an expression selects, like answers once. With --engine: only
whether the installed build of that engine takes all that its scenarios give it.

Exit status: 0 the table was made, or no check failed; 1 a check failed, so that a selected test
cannot run; 2 wrong usage. docs/how-to/preflight.md
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten

from perfgate.cli.doctor_selection import check_selection, preflight_of
from perfgate.cli.output import add_format, described, print_json, print_template, refuse_given
from perfgate.cli.scenario_choice import add_folder, load, shaped
from perfgate.core.errors import PerfgateError
from perfgate.core.programs.environment_variables import variables_set
from perfgate.launchers.base import Launcher, launcher
from perfgate.launchers.site import load_site
from perfgate.machine.hardware import Machine, counted, detect
from perfgate.machine.preflight import Check, PreflightTarget
from perfgate.machine.preflight.software import EVALUATORS, judge_software, own_environment
from perfgate.plan.toolchain import toolchain_for
from perfgate.scenarios.scenario import Scenario

_WIDTH = 70
_REHEARSED = "pytest --rehearse"


@dataclass(frozen=True)
class Obstacle:
    """Why a scenario cannot run here, or not all of it.

    Attributes:
        reason: the first one.
        fix: what to do about it.
        of_accuracy: its accuracy tests alone cannot.
    """

    reason: str
    fix: str
    of_accuracy: bool = False

    @property
    def text(self) -> str:
        """As the table has it."""
        return f"{'all but accuracy' if self.of_accuracy else 'no'}: {self.reason}"


_HELP = {
    "--marker": "check for the tests of an expression, as pytest -m",
    "--scenario": "check for this scenario (preflight)",
    "--engine": "check only whether its installed build takes all options",
    "--shape": "other lengths of an explore scenario, e.g. 4096/512",
    "--run-dir": "folder of the run's files (default: runs)",
    "--reach": "log in to the other nodes of an mpirun scenario",
    "--launcher": "how programs would be started (default: local)",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("-m", "--marker", metavar="EXPRESSION")
    add("--scenario", metavar="ID")
    add("--engine", metavar="NAME")
    add_folder(command)
    add("--shape", metavar="ISL/OSL")
    add("--run-dir", type=Path, metavar="DIR")
    add("--reach", action="store_true")
    add("--launcher", choices=["local", "docker", "slurm"], default="local")
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    load_site()  # what is wrong with it is told here, not by a night's run
    suite = load(arguments.scenarios)
    scenarios = suite.scenarios
    if arguments.marker is not None or arguments.engine is not None:
        others: dict[str, object] = {"--scenario": None, "--shape": None}
        if arguments.engine is not None:
            others |= {"--run-dir": None, "--reach": False}
        own = "-m" if arguments.engine is None else "--engine"
        refuse_given(arguments, others, f"not together with {own}")
        start_with, where = _target(arguments)
        return check_selection(arguments, suite, detect(), start_with, where)
    if arguments.scenario:
        shapes = [arguments.shape] if arguments.shape else []
        (scenario,) = shaped(scenarios, arguments.scenario, shapes)
        return _preflight(arguments, scenario)
    unused = {"--run-dir": None, "--reach": False, "--shape": None, "--launcher": "local"}
    hint = "name the scenario with --scenario ID, or tests with -m EXPRESSION"
    refuse_given(arguments, unused, "belongs to the preflight of chosen scenarios", hint=hint)
    return _overview(arguments, scenarios)


def _overview(arguments: argparse.Namespace, scenarios: Sequence[Scenario]) -> int:
    """The machine, and each scenario with the first reason why it cannot run."""
    machine = detect()
    obstacles = {scenario.id: _why_not(scenario, machine) for scenario in scenarios}
    fixes = {name: why.fix for name, why in obstacles.items() if why is not None}
    own = own_environment()
    surroundings = {"variables": variables_set(os.environ), "shared_python": own and own.found}
    if arguments.format == "json":
        reasons = {
            name: None if why is None or why.of_accuracy else why.reason
            for name, why in obstacles.items()
        }
        values = {"machine": asdict(machine), "cannot_run": reasons, "fixes": fixes}
        print_json({**values, **surroundings})
        return 0
    numbered = list(dict.fromkeys(fixes.values()))
    rows = [
        (name, "yes" if why is None else f"{why.text} [fix {numbered.index(why.fix) + 1}]")
        for name, why in obstacles.items()
    ]
    gpus = f"none ({machine.gpu_note})"
    if machine.gpus:
        gpus = f"{counted(gpu.name for gpu in machine.gpus)}, driver {machine.gpus[0].driver}"
    shown = {"machine": machine, "gpus": gpus, "rows": rows, "fixes": numbered}
    print_template("doctor_machine.txt", {**shown, "hint": own and own.hint, **surroundings})
    return 0


def _target(arguments: argparse.Namespace) -> tuple[Launcher, PreflightTarget]:
    """The launcher, and where and how it would start something."""
    start_with = launcher[arguments.launcher]()
    return start_with, PreflightTarget(
        run_folder=arguments.run_dir,
        reach=arguments.reach,
        runtime=start_with.runtime,
        by_slurm=arguments.launcher == "slurm",
    )


def _preflight(arguments: argparse.Namespace, scenario: Scenario) -> int:
    machine = detect()
    start_with, where = _target(arguments)
    report = preflight_of(scenario, machine, start_with, where)
    own = own_environment()
    report = replace(report, checks=(*report.checks, *filter(None, [own])))
    if arguments.format == "json":
        print_json(
            {
                "scenario": scenario.id,
                "machine": asdict(machine),
                "fit": not report.of("failed"),
                "checks": [asdict(check) for check in report.checks],
                "observed": dict(report.observed),
            }
        )
    else:
        rows = [(check.name, check.outcome, _in_table(check)) for check in report.checks]
        values = {"scenario": scenario, "machine": machine, "report": report, "rows": rows}
        print_template("doctor_scenario.txt", values)
    return 1 if report.of("failed") else 0


def _in_table(check: Check) -> str:
    """What was found; shortened where it is told again below."""
    is_told_again = check.outcome in ("failed", "warning")
    return shorten(check.found, _WIDTH, placeholder=" …") if is_told_again else check.found


def _why_not(scenario: Scenario, machine: Machine) -> Obstacle | None:
    """What a run would be refused for; None: nothing that can be known beforehand."""
    lacking = machine.lacks(scenario.hardware, scenario.launch)
    if lacking:
        return Obstacle(lacking, f"use a machine that has them, or try it here: {_REHEARSED}")
    try:
        checks = judge_software(toolchain_for(scenario))
    except PerfgateError as error:
        return Obstacle(" ".join(str(error).split()), "fix what the message names")
    failed = [check for check in checks if check.outcome == "failed"]
    if not failed:
        return None
    first = min(failed, key=lambda check: check.name == EVALUATORS)
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    fix = first.hint or f"perfgate doctor --scenario {scenario.id} tells more"
    return Obstacle(first.found + more, fix, of_accuracy=first.name == EVALUATORS)
