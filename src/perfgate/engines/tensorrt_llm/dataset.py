"""Synthetic prompts, made by the release's own tool.

Source: best-performance guide, "Dataset preparation" and "B200 max-throughput for R1".
"""

from perfgate.core.command import Command, Step
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_BENCH
from perfgate.engines.arguments import Argument, spelled
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.checkout import script
from perfgate.engines.tensorrt_llm.table import BENCH, GENERATOR, Release, release
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import Scenario, Workload

FILE = "dataset.txt"


def prepare(scenario: Scenario, build: EngineBuild, requests: int, locations: Locations) -> Step:
    """The step that writes `requests` prompts of the scenario's lengths to ``dataset.txt``.

    All prompts have exactly the asked lengths: the standard deviations are 0, as documented.

    Raises:
        InputError: no lengths, or the tool needs a checkout that is not there.
        MissingProgram: the tool is not installed.
    """
    known, tool = release(build.version), release(build.version).dataset_tool
    lengths = spelled(
        scenario,
        known,
        f"{tool.program} {GENERATOR}",
        _lengths(scenario, _workload(scenario), requests),
    )
    head, stdout = (
        (_subcommand(scenario, known, locations), None)
        if tool.script is None
        else (_script(scenario, known, tool.script, locations), FILE)
    )
    command = Command((*head, GENERATOR, *lengths), stdout=stdout)
    return Step("prepare_dataset", command, produces=FILE)


def _script(scenario: Scenario, known: Release, path: str, locations: Locations) -> tuple[str, ...]:
    arguments = [
        Argument("to_stdout", True, "workload.dataset"),
        Argument("tokenizer", reference(scenario, locations).where, "model.name"),
        Argument("seed", _workload(scenario).seed or None, "workload.seed"),
    ]
    program = known.dataset_tool.program
    return (*script(locations, path), *spelled(scenario, known, program, arguments))


def _subcommand(scenario: Scenario, known: Release, locations: Locations) -> tuple[str, ...]:
    """The subcommand takes the tokenizer from `--model`, not from `--model_path`."""
    model = [Argument("model", reference(scenario, locations).where, "model.name")]
    own = [
        Argument("output", FILE, "workload.dataset"),
        Argument("seed", _workload(scenario).seed or None, "workload.seed"),
    ]
    return (
        *locations.find(TRTLLM_BENCH),
        *spelled(scenario, known, BENCH, model),
        "prepare-dataset",
        *spelled(scenario, known, known.dataset_tool.program, own),
    )


def _lengths(scenario: Scenario, load: Workload, requests: int) -> list[Argument]:
    if load.isl is None or load.osl is None:
        raise InputError(
            "synthetic prompts need lengths",
            file=scenario.file,
            field=f"{scenario.id}.workload",
            found=f"isl {load.isl}, osl {load.osl}",
            expected="both, in tokens",
        )
    return [
        Argument("isl", load.isl, "workload.isl"),
        Argument("osl", load.osl, "workload.osl"),
        Argument("isl_spread", 0, "workload.isl"),
        Argument("osl_spread", 0, "workload.osl"),
        Argument("requests", requests, "workload.requests"),
    ]


def _workload(scenario: Scenario) -> Workload:
    if scenario.workload is None:
        raise InputError(
            "no workload to make prompts for", file=scenario.file, field=f"{scenario.id}.workload"
        )
    return scenario.workload
