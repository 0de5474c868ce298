"""`perfgate doctor`: what this machine can run, and why not the rest.

With --scenario: whether it is fit for that one; every check, what it found, how to mend it.

Exit status: 0 no check failed, 1 one did, 2 wrong usage. docs/how-to/preflight.md
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import shorten

from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.scenario_choice import add_folder, load, shaped
from perfgate.core.errors import InputError, MissingProgram, PerfgateError, RunError
from perfgate.core.locations import Locations
from perfgate.launchers.base import launcher
from perfgate.machine.hardware import Machine, detect
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget, look
from perfgate.machine.vboost.setting import boosted
from perfgate.plan.toolchain import toolchain_for
from perfgate.scenarios.scenario import Scenario

_WIDTH = 70


_HELP = {
    "--scenario": "check this machine for this scenario (preflight)",
    "--shape": "other lengths, for a scenario to explore with, e.g. 4096/512",
    "--run-dir": "where the run's files would go (default: runs)",
    "--reach": "log in to the other nodes of an mpirun scenario",
    "--try-vboost": "set the GPUs' vboost slider, check that it is set, and restore it",
    "--launcher": "how its programs would be started (default: local)",
    "--on-node": "this is a node that a launcher found: look at its GPUs whatever starts the "
    "scenario",
    "--contained": "the engine's programs are in a container: do not look for them here",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("--scenario", metavar="ID")
    add_folder(command)
    add("--shape", metavar="ISL/OSL")
    add("--run-dir", type=Path, metavar="DIR")
    add("--reach", action="store_true")
    add("--try-vboost", type=int, metavar="LEVEL")
    add("--launcher", choices=["local", "docker", "slurm"], default="local")
    add("--on-node", action="store_true")
    add("--contained", action="store_true")
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    scenarios = load(arguments.scenarios).scenarios
    if arguments.scenario:
        shapes = [arguments.shape] if arguments.shape else []
        (scenario,) = shaped(scenarios, arguments.scenario, shapes)
        return _preflight(arguments, scenario)
    _refuse_alone(arguments)
    machine = detect()
    reasons = {scenario.id: _why_not(scenario, machine) for scenario in scenarios}
    if arguments.format == "json":
        print_json({"machine": asdict(machine), "cannot_run": reasons})
        return 0
    gpus = ", ".join(gpu.name for gpu in machine.gpus) or f"none ({machine.gpu_note})"
    print(f"machine: {machine.host}, {machine.cores} cores of {machine.cpu}")
    print(f"memory: {machine.memory_bytes / 2**30:.1f} GiB; GPUs: {gpus}\n")
    print_table(
        ("scenario", "can run here"),
        [(name, "yes" if reason is None else f"no: {reason}") for name, reason in reasons.items()],
    )
    return 0


def _refuse_alone(arguments: argparse.Namespace) -> None:
    for option, default in {
        "--run-dir": None,
        "--reach": False,
        "--try-vboost": None,
        "--shape": None,
        "--launcher": "local",
        "--on-node": False,
        "--contained": False,
    }.items():
        if getattr(arguments, option.removeprefix("--").replace("-", "_")) != default:
            raise InputError(
                "belongs to the preflight of one scenario",
                field=option,
                hint="name the scenario with --scenario ID",
            )


def _preflight(arguments: argparse.Namespace, scenario: Scenario) -> int:
    machine = detect()
    start_with = launcher[arguments.launcher]()
    where = PreflightTarget(
        run_folder=arguments.run_dir,
        reach=arguments.reach,
        on_node=arguments.on_node,
        contained=arguments.contained,
        runtime=start_with.runtime,
        by_slurm=arguments.launcher == "slurm",
    )
    tools = toolchain_for(
        scenario, start_with.locations(Locations.of_environment(), scenario, None)
    )
    report = look(scenario, tools, machine, where)
    if arguments.try_vboost is not None:
        report = replace(report, checks=(*report.checks, _vboost(arguments.try_vboost, report)))
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
        print(f"{scenario.id} on {machine.host}\n")
        _print(report)
    return 1 if report.of("failed") else 0


def _vboost(level: int, report: PreflightReport) -> Check:
    """Whether a run could have the slider at `level`; it is back where it was when this returns."""
    if not report.gpus:
        raise InputError(
            "no GPU of the scenario is seen here", field="--try-vboost", expected="a GPU scenario"
        )
    expected = f"a vboost slider that can be set to {level}"
    try:
        with boosted(level, report.gpus) as before:
            was = ", ".join(sorted({str(one) for one in before.values()}))
    except RunError as error:
        found = "; ".join([error.message, *error.evidence])
        return Check("vboost", "failed", found, expected, error.hint)
    except MissingProgram as error:
        return Check("vboost", "failed", str(error), expected)
    return Check("vboost", "ok", f"was set to {level}, seen, and put back to {was}", expected)


def _print(report: PreflightReport) -> None:
    """All checks in a table; below it what is not well, and how to mend it."""
    print_table(
        ("check", "outcome", "found"),
        [(check.name, check.outcome, _in_table(check)) for check in report.checks],
    )
    for check in (*report.of("failed"), *report.of("warning")):
        print(f"\n{check.name}: {check.outcome}\n  found: {check.found}")
        if check.expected:
            print(f"  expected: {check.expected}")
        if check.hint:
            print(f"  fix: {check.hint}")
    print("\nobserved, not judged:")
    for name, fact in report.observed.items():
        print(f"  {name}: {fact}")
    counts = [
        f"{len(report.of(outcome))} {word}"
        for outcome, word in (
            ("failed", "failed"),
            ("warning", "to be looked at"),
            ("unknown", "unknown"),
        )
        if report.of(outcome)
    ]
    verdict = "not fit" if report.of("failed") else "fit"
    print(f"\n{verdict}: {len(report.checks)} checks" + "".join(f", {one}" for one in counts))


def _in_table(check: Check) -> str:
    """What was found; shortened where it is told again below."""
    is_told_again = check.outcome in ("failed", "warning")
    return shorten(check.found, _WIDTH, placeholder=" …") if is_told_again else check.found


def _why_not(scenario: Scenario, machine: Machine) -> str | None:
    lacking = machine.lacks(scenario.hardware, scenario.launch)
    if lacking:
        return lacking
    try:
        toolchain_for(scenario).require()
    except PerfgateError as error:
        return " ".join(str(error).split())
    return None
