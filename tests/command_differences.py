"""The words in which a documented command and the rendered one differ.

What is rendered is what `perfgate scenarios command ID` prints, at the document's release.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from string import Template
from typing import Any

import yaml
from documented_commands import IMAGE, SCENARIOS, Documented

from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.plan import calls
from perfgate.plan.container import container_of
from perfgate.rehearsal.recorded_pages import read

PAPER = Locations(on_paper=True)
WHOLE = "the whole command"
# A command is known by the first of these that its text has.
PROGRAMS = (
    *("docker run", "lm_eval", "benchmark_serving", "vllm bench serve", "vllm serve"),
    *("sglang.launch_server", "prepare_dataset.py", "quickstart_advanced.py", "gpqa_llmapi.py"),
    *("mpirun", "srun", "sbatch", "trtllm-bench", "trtllm-serve", "/health", "/v1/completions"),
)
_ENGINE = ("trtllm-llmapi-launch", "trtllm-bench", "trtllm-serve")  # what a launcher starts
# Words that belong to no option before them.
_ALONE = {"throughput", "token-norm-dist", "bash", "/bin/bash", "benchmark.sh", IMAGE}
_OPTION = re.compile(r"-{1,2}[A-Za-z][\w-]*(?:=.*)?|>", re.DOTALL)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=.*")
# Program → the recorded page that says which spellings are one option.
_PAGES = {"trtllm-bench": "tensorrt_llm_about_1.0", "sglang.launch_server": "sglang_0.5.3"}

Pair = tuple[str, str]  # an option, variable or key, and its value


@dataclass(frozen=True)
class Difference:
    """A word of a command that one side has and the other has not, or has with another value."""

    program: str
    scenario: str
    is_documented: bool
    word: str


# Words. -------------------------------------------------------------------------------------


def pairs(program: str, words: Sequence[str]) -> list[Pair]:
    """Variables, options with their values, and what is neither; the order says nothing."""
    named = [*takewhile(_VARIABLE.fullmatch, words)]
    found = [(f"{name}=", value) for name, _, value in (word.partition("=") for word in named)]
    found.append(("", ""))
    for word in words[len(named) :]:
        if _OPTION.fullmatch(word):
            option, _, value = word.partition("=")
            found.append((_canonical(program, option), value))
        elif word in _ALONE or program == "benchmark.sh":
            found.append((word, ""))
        else:
            name, value = found[-1]
            found[-1] = (name, f"{value} {_plain(word)}".strip())
    return [pair for pair in found if pair != ("", "")]


@cache
def _spellings(program: str) -> Mapping[str, str]:
    options = read(_PAGES[program]).programs[program] if program in _PAGES else {}
    return {word: one.options[0] for one in options.values() for word in one.options}


def _canonical(program: str, option: str) -> str:
    """The option as its program first names it; argparse takes the beginning of a name, too."""
    spellings = _spellings(program)
    begun = {one for word, one in spellings.items() if word.startswith(option)}
    return spellings.get(option) or (begun.pop() if len(begun) == 1 else option)


def _plain(value: str) -> str:
    return json.dumps(json.loads(value)) if value.startswith("{") else value


def keys(tree: Mapping[str, Any], above: str = "") -> list[Pair]:
    """The keys of a settings file, each with the mappings that it is in."""
    found: list[Pair] = []
    for name, value in tree.items():
        nested = isinstance(value, Mapping)
        found += keys(value, f"{above}{name}.") if nested else [(f"{above}{name}:", str(value))]
    return found


def text(pair: Pair, variables: Mapping[str, str]) -> str:
    """A pair as people write it; a number in flight by its name, as it is another at each point."""
    name, value = pair
    if name in ("--seed", "--result-filename") and "concurrency" in variables:
        value = re.sub(rf"(?<!\d){variables['concurrency']}(?!\d)", "${concurrency}", value)
    return f"{name}{value}" if name.endswith("=") else f"{name} {value}".strip()


# What is rendered. --------------------------------------------------------------------------


@dataclass(frozen=True)
class Rendered:
    """A call as rendered: its words and settings, and what the document's variables are there."""

    program: str
    words: tuple[Pair, ...]
    settings: tuple[Pair, ...]
    variables: Mapping[str, str]


@cache
def rendered(name: str) -> tuple[Rendered, ...]:
    """All calls of a scenario at the release of its document, launcher and engine apart."""
    scenario = SCENARIOS[name]
    version = scenario.source.engine_version
    assert version is not None
    build = EngineBuild(scenario.engine.name, version, version)
    steps = [*calls.steps(scenario, build, PAPER, calls.endpoint_of(scenario, build, PAPER))]
    if scenario.container is not None and scenario.launch is None:
        box = container_of(scenario, build)
        (boxed,) = (
            step
            for step in calls.contained_steps(scenario, build, PAPER, box)
            if step.role == "server"
        )
        steps.append(boxed)
    return tuple(call for step in steps for call in _calls(name, step))


def _calls(name: str, step: Step) -> Iterator[Rendered]:
    command = step.command
    settings = [
        pair
        for file, content in command.files.items()
        if file.endswith(".yml")
        for pair in keys(yaml.safe_load(content))
    ]
    variables = _variables(name, step)
    for program, words in _programs(command):
        yield Rendered(program, tuple(pairs(program, words)), tuple(settings), variables)


def _variables(name: str, step: Step) -> dict[str, str]:
    scenario = SCENARIOS[name]
    mtp, load = scenario.engine.settings.mtp, scenario.workload
    found = {} if mtp is None else {"N": str(mtp.layers)}
    for point in scenario.points():
        if load is not None and point.label == step.probe:
            found |= {"concurrency": str(point.concurrency), "num_prompts": str(point.requests)}
            found |= {"isl": str(load.isl), "osl": str(load.osl)}
    return found


def _programs(command: Command) -> Iterator[tuple[str, Sequence[str]]]:
    """Each program of a command, and of the scripts that it hands on, with its words."""
    words = [*(f"{name}={value}" for name, value in command.env.items()), *command.argv]
    words += [">", command.stdout] if command.stdout else []
    starts = [number for number, word in enumerate(words) if word in _ENGINE]
    split = starts[0] if starts else len(words)
    head, tail = words[:split], words[split:]
    if all(_VARIABLE.fullmatch(word) for word in head):
        head, tail = [], words
    for part in (head, tail):
        if part:
            yield next(one for one in PROGRAMS if one in " ".join(part)), part
    for file in ("benchmark.slurm", "benchmark.sh"):
        lines = command.files.get(file, "").replace("\\\n", " ").splitlines()
        job = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]
        if job:
            yield "#SBATCH", job
        for line in lines:
            if line.startswith("exec "):
                call = shlex.split(line)[1:]
                yield next(one for one in PROGRAMS if one in " ".join(call)), call
            elif line and not line.startswith("#"):
                yield file, [line]


# The comparison. ----------------------------------------------------------------------------


def differences(command: Documented) -> set[Difference]:
    """What differs between a documented command and the calls of the scenarios that run it.

    Raises:
        AssertionError: no scenario makes such a call.
    """
    program = command.program
    if not command.scenarios:
        return {Difference(program, "", is_documented=True, word=WHOLE)}
    made = [(name, call) for name in command.runs_in for call in rendered(name)]
    made = [(name, call) for name, call in made if call.program == program]
    assert {name for name, _ in made} == {*command.runs_in} != set()
    return {
        Difference(program, name, is_documented, text(pair, call.variables))
        for name, call in made
        for is_documented, left in zip((True, False), _left(command, call), strict=True)
        for pair in left
    }


def _left(command: Documented, call: Rendered) -> tuple[Counter[Pair], Counter[Pair]]:
    """What only the document has, and what only perfgate has."""
    theirs, ours = Counter[Pair](), Counter[Pair]()
    if command.words is not None:
        words = shlex.split(Template(command.words).safe_substitute(call.variables))
        theirs.update(pairs(command.program, words))
        ours.update(call.words)
    if command.yaml is not None:
        theirs.update(keys(command.yaml))
        ours.update(call.settings)
    if command.excerpt:
        named = {name for name, _ in theirs}
        ours = Counter(pair for pair in ours.elements() if pair[0] in named)
    return theirs - ours, ours - theirs
