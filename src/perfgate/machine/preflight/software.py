"""Software: whether engine, programs, model and dataset are here and as the scenario says.

Asked with the functions that a run itself uses, so that both refuse the same. No engine is started;
installed programs are asked for version and options, which happens once a process.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain

from perfgate.clients import datasets
from perfgate.core.errors import InputError, MissingProgram, PerfgateError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import MODELS, Locations
from perfgate.core.redaction import redact
from perfgate.engines.base import engine
from perfgate.evaluators import trtllm_eval
from perfgate.machine.preflight.check import (
    HERE,
    Check,
    Finding,
    PreflightTarget,
    Rule,
    checked,
    gib,
    judged,
)
from perfgate.plan.calls import options_answer
from perfgate.plan.toolchain import Toolchain
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Scenario

EVALUATORS = "evaluators"


def judge_software(tools: Toolchain, where: PreflightTarget = HERE) -> tuple[Check, ...]:
    """All that the scenario needs of software and files where it would be started."""
    inside = Finding("unknown", "it is in the container") if where.contained else None
    of_build = inside
    if not where.contained and not _has_build(tools):
        of_build = Finding("unknown", "the engine reports no version")
    of_accuracy = bool(tools.evaluators) and not (where.on_node or where.starts)
    # The launcher of other nodes finds them itself.
    is_launched_here = tools.scenario.launch is not None and not (where.on_node or where.by_slurm)
    brings_dataset = _dataset_finder(tools.scenario) is not None
    rules: tuple[Rule, ...] = (
        ("engine", True, partial(_asked, _engine, tools, inside)),
        ("clients", True, partial(_asked, _clients, tools, of_build)),
        (EVALUATORS, of_accuracy, partial(_asked, _evaluators, tools)),
        ("model", True, partial(_asked, _model, tools)),
        ("dataset", brings_dataset, partial(_asked, _dataset, tools)),
        ("options", tools.engine.verify is not None, partial(_asked, _options, tools, of_build)),
        ("launch", is_launched_here, partial(_asked, _launch, tools)),
    )
    return judged(rules)


def _has_build(tools: Toolchain) -> bool:
    try:
        _ = tools.build
    except PerfgateError:  # the question of the engine tells why
        return False
    return True


def _asked(
    ask: Callable[[Toolchain], str | Finding], tools: Toolchain, instead: Finding | None = None
) -> Finding:
    """The answer, unless it is known without; an error that is told on purpose is a failure in
    its own words.
    """
    if instead is not None:
        return instead
    try:
        answer = ask(tools)
        return answer if isinstance(answer, Finding) else Finding("ok", answer)
    except InputError as error:
        place = "".join(f"{part}: " for part in (error.file, error.field) if part)
        extent = "" if error.found is None else f" ({_line(error.found)})"
        found = f"{place}{error.problem}{extent}"
        return Finding("failed", found, error.expected or "", error.hint or "")
    except MissingProgram as error:
        return Finding("failed", _line(error.problem), hint=error.hint)
    except PerfgateError as error:
        return Finding("failed", _line(error))


def _dataset_finder(scenario: Scenario) -> Callable[[Locations], object] | None:
    """What finds the dataset that a person must bring; None: it needs none."""
    load = scenario.workload
    if load is not None and load.dataset == "real":
        return partial(datasets.real_dataset, scenario)
    if load is not None and load.dataset == "sharegpt":
        return datasets.sharegpt
    asked = {(task.evaluator, task.task) for task in scenario.accuracy}
    if any(evaluator == trtllm_eval.GPQA for evaluator, _ in asked):
        return datasets.gpqa_diamond
    if (trtllm_eval.EVALUATOR, trtllm_eval.GPQA_TASK) in asked:
        return partial(datasets.of_trtllm_eval, trtllm_eval.GPQA_TASK)
    return None


def _dataset(tools: Toolchain) -> str:
    find = _dataset_finder(tools.scenario)
    return "none" if find is None else str(find(tools.locations))


def _engine(tools: Toolchain) -> str | Finding:
    build = tools.build
    tools.engine.check(tools.scenario, build)
    commit = "" if build.commit == build.version else f", commit {build.commit[:12]}"
    found = f"{build.name} {build.version}{commit}"
    unknown = tools.engine.uncovered(build.version)
    notes = [unknown] if unknown else []
    notes += tools.engine.known_limitations(tools.scenario, build)
    return Finding("warning", f"{found}: {'; '.join(notes)}") if notes else found


def _launch(tools: Toolchain) -> str:
    launch = tools.scenario.launch
    wrapped(Command(("program",)), tools.scenario, tools.locations)
    return "none" if launch is None else launch.by


def _clients(tools: Toolchain) -> str:
    versions = (f"{client.name} {tools.version_of(client)}" for client in tools.clients.values())
    return ", ".join(versions) or "none"


def _evaluators(tools: Toolchain) -> str:
    """Those that are programs of their own, which no build of the engine is asked for."""
    return ", ".join(
        f"{program.name} of the engine"
        if program.of_engine
        else f"{program.name} {tools.version_of(program)}"
        for program in tools.evaluators.values()
    )


def _model(tools: Toolchain) -> Finding:
    facts = tools.model_facts
    name = str(facts.get("file") or facts.get("name") or tools.scenario.model.name)
    if facts.get("source") == "hub":
        models = tools.locations.models
        where = f"{MODELS} is not set" if models is None else f"no folder of it below {models}"
        return Finding("unknown", f"{name} comes from the hub, and is not checked: {where}")
    size, shards = facts.get("bytes"), facts.get("shards")
    parts = [name]
    parts += [f"{shards} shards"] if shards is not None else []
    parts += [gib(size)] if isinstance(size, int) else []
    return Finding("ok", ", ".join(parts))


def _options(tools: Toolchain) -> str | Finding:
    commands, answer = options_answer(tools)
    found = _line("; ".join((f"those of {commands} commands", *chain(*answer))))
    return Finding("unknown" if answer.unasked else "warning", found) if any(answer) else found


def _line(value: object) -> str:
    return redact(" ".join(str(value).split()))


def own_environment() -> Check | None:
    """Which engines are in perfgate's own Python, and what that does; None: none is.

    Only the metadata of packages is read: importing an engine takes a minute, and a GPU.
    """
    names = [known.distribution for known in engine.values() if known.distribution]
    found = [f"{name} {one}" for name in names if (one := _version(name)) is not None]
    if not found:
        return None
    text = (
        f"perfgate shares its Python ({sys.executable}) with {', '.join(found)}: what perfgate "
        "needs replaces packages of the engine under test, such as numpy and huggingface_hub"
    )
    return checked("own environment", Finding("warning", text))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
