"""The nodes' own preflight, as one answer: `ask_doctors`.

``python -P -m perfgate.launchers.nodes.preflight [--contained] [--import MODULE]… FOLDER`` runs on
each node: it reads the one scenario of FOLDER/scenario.yaml and prints the checks of that machine
as a line of JSON. Exit status: 0 the checks were made, whatever they show; 2 they could not be.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from perfgate.clients.base import client
from perfgate.core.errors import InputError, PerfgateError, RunError
from perfgate.core.files import json_text
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.measurement import Json
from perfgate.core.programs.command import Command
from perfgate.core.programs.environment_variables import is_written
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import engine
from perfgate.evaluators.base import evaluator
from perfgate.launchers.base import Job
from perfgate.machine.hardware import detect
from perfgate.machine.preflight import PreflightTarget, look
from perfgate.machine.preflight.inspection import judge_pyxis
from perfgate.plan.toolchain import registered, toolchain_for
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.scenario import SERVED_SMOKE, Scenario, scenario_to_plain

PROGRAM = "perfgate.launchers.nodes.preflight"  # this module
SCENARIO = "scenario.yaml"
DOCTOR_S = 300.0  # programs are asked for their versions, from a file system that may be slow
SAME_PATH = "the run folder, this checkout and its Python must be at the same path on every node "
SAME_PATH += "(docs/how-to/slurm.md, docs/how-to/mpirun.md)"


def scenario_text(scenario: Scenario) -> str:
    """A scenario file with this one alone, as it is started: in its shape, from any folder.

    Of its variables those stay out that no script has either, and its markers, which other files
    declare; nothing that is looked at needs them.
    """
    launch = scenario.launch
    plain = scenario_to_plain(
        replace(
            scenario,
            environment=_written(scenario.environment),
            launch=launch and replace(launch, pass_on=_written(launch.pass_on)),
        )
    )
    del plain["content_hash"], plain["markers"]
    return json.dumps({"schema_version": 1, "scenarios": [plain]}, indent=2, ensure_ascii=False)


def _written(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if is_written(name, value)}


def doctor_command(scenario: Scenario, folder: Path, *, contained: bool) -> Command:
    """The call of the program on a node; nothing of its working folder is imported.

    Args:
        scenario: what is to be started.
        folder: where `scenario_text` is, and the call's files go.
        contained: whether the engine's programs are in a container, and not on the node itself.
    """
    argv = [sys.executable, "-P", "-m", PROGRAM]
    if contained:
        argv.append("--contained")
    for module in _modules(scenario):
        argv += ["--import", module]
    return Command((*argv, str(folder)))


def ask_doctors(running: Mapping[str, Job]) -> Mapping[str, Json]:
    """What the calls find: the first node's answer, with the checks that failed on others.

    Args:
        running: node → its call, the server's first; all are ended here.

    Raises:
        RunError: class ``config_error``: a node could not be asked; ``hang``: it did not answer.
    """
    with ExitStack() as stack:
        for job in running.values():
            stack.enter_context(job)
        answers = {node: _answer(node, job) for node, job in running.items()}
    first, *others = answers
    failed = [
        {**check, "name": f"{node} {check['name']}"}
        for node in others
        for check in answers[node]["checks"]
        if check["outcome"] == "failed"
    ]
    return {**answers[first], "checks": [*answers[first]["checks"], *failed]}


def with_plugin(answer: Mapping[str, Any]) -> Mapping[str, Json]:
    """The answer, and whether srun here can have containers."""
    plugin = asdict(judge_pyxis())
    return {**answer, "checks": [*answer["checks"], plugin]}


def _answer(node: str, job: Job) -> dict[str, Any]:
    ended = job.wait(total_s=DOCTOR_S)
    if ended.reason == "total":
        why = f"the preflight did not answer on {node} in {DOCTOR_S:.0f} s"
        raise RunError("hang", why, evidence=job.tail(5))
    try:
        answer = json_text.parse(read_input(job.stdout, json_text.LARGEST_LINE))
    except (ValueError, InputError):
        answer = None
    if ended.status != 0 or not isinstance(answer, dict) or "checks" not in answer:
        why = f"{node} could not be checked: its preflight ended with status {ended.status}"
        raise RunError("config_error", why, evidence=job.tail(5), hint=SAME_PATH)
    return answer


def _modules(scenario: Scenario) -> list[str]:
    """Modules outside perfgate that registered what the scenario names, as a plugin does."""
    load = scenario.workload
    classes: list[type] = [engine[scenario.engine.name]]
    classes += [client[load.client]] if load is not None else []
    if scenario.smoke is not None and scenario.smoke.client != SERVED_SMOKE:
        classes.append(client[scenario.smoke.client])
    classes += [evaluator[task.evaluator] for task in scenario.accuracy]
    return sorted({one.__module__ for one in classes if one.__module__.split(".")[0] != "perfgate"})


def main(words: Sequence[str]) -> int:
    """Check this node; returns the exit status."""
    parser = argparse.ArgumentParser(prog=PROGRAM)
    parser.add_argument("--contained", action="store_true")
    parser.add_argument("--import", dest="modules", action="append", default=[])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args(words)
    try:
        for module in arguments.modules:
            import_module(module)
        answer = _checks(arguments.folder, contained=arguments.contained)
    except (PerfgateError, ImportError) as error:
        print(f"perfgate: {error}", file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return 0


def _checks(folder: Path, *, contained: bool) -> dict[str, Json]:
    (scenario,) = load_suite(folder / SCENARIO, registered()).scenarios
    machine = detect()
    target = PreflightTarget(run_folder=folder, on_node=True, contained=contained)
    report = look(scenario, toolchain_for(scenario, Locations.of_environment()), machine, target)
    return {
        "machine": asdict(machine),
        "checks": [asdict(check) for check in report.checks],
        "observed": dict(report.observed),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
