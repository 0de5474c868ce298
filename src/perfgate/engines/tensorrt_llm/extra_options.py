"""Extra options: `engine.extra_yaml` and `engine.extra_args` on their way into a rendered call.

A scenario says each thing in one place. An extra option that a field of the scenario says, or that
perfgate gives for its own needs, is refused, whether or not the field is set. What is refused
follows from the rendering itself, in each release's spelling, so that it keeps up with the tables.
An extra key does replace a default that is only spelled out because it moved since the document.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from perfgate.core.errors import CannotDo
from perfgate.engines.arguments import Argument
from perfgate.engines.refusal import extra_words, said_elsewhere
from perfgate.engines.tensorrt_llm import llm_api_yaml
from perfgate.engines.tensorrt_llm.table import FACTS, Release
from perfgate.scenarios.rules.extra_options import ARGS, YAML, extra_keys, leaves
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, MoeLoadBalancer, Scenario
from perfgate.scenarios.yaml_document import Keys, Problem

# Any value of each setting that has keys of its own, to see which. MTP and torch.compile have keys
# that also say more than the vocabulary does: theirs are taken only where the scenario sets them.
_ANY = EngineSettings(
    attention_dp=True,
    kv_cache_dtype="fp8",
    moe_backend="CUTLASS",
    moe_max_num_tokens=1,
    moe_load_balancer=MoeLoadBalancer(1, 1),
    attention_backend="TRTLLM",
    cuda_graphs=CudaGraphs(padding=True, batch_sizes=(1,), max_batch_size=1),
    overlap_scheduler=True,
    stream_interval=1,
    iteration_log=True,
)


def words(
    scenario: Scenario, known: Release, program: str, arguments: Iterable[Argument]
) -> tuple[str, ...]:
    """The scenario's extra words for `program`.

    Args:
        scenario: the scenario.
        known: the release that is told.
        program: the program, as the release tables call it.
        arguments: what it is given beside them, or could be.

    Raises:
        ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives.
    """
    if not scenario.engine.extra_args:
        return ()
    keys = _owners(scenario, known, program).items()
    taken = {f"--{key[0]}": owner for key, owner in keys if len(key) == 1}
    for argument in arguments:
        listed = known.options(program).get(argument.setting)
        if listed is not None:
            taken |= dict.fromkeys(map(_as_declared, listed.spellings), argument.field)
    for whose, names in FACTS.never.items():
        taken |= dict.fromkeys(names, whose)
    return extra_words(scenario, _typed(program), lambda name: taken.get(_as_declared(name)))


def merged(
    scenario: Scenario, known: Release, program: str, tree: Mapping[str, Any]
) -> dict[str, Any]:
    """The file's content with the scenario's extra keys.

    Args:
        scenario: the scenario.
        known: the release that reads the file.
        program: the program that does.
        tree: what its settings, pinned or not, write.

    Raises:
        ExtraOptionRefused: a key that a field of the scenario gives.
    """
    extra = scenario.engine.extra_yaml
    if extra is None:
        return dict(tree)
    owners = _owners(scenario, known, program)
    for keys, value in extra_keys(scenario.engine):
        saying = [
            owner
            for own, owner in owners.items()
            if own[: len(keys)] == keys or keys[: len(own)] == own
        ]
        if saying:
            raise said_elsewhere(scenario, (*YAML, *keys), value, ", ".join(dict.fromkeys(saying)))
    full, settings = _laid_over(tree, extra), scenario.engine.settings
    return llm_api_yaml.with_kv_cache_kept(full, scenario, settings, known, program)


def misplaced(scenario: Scenario, programs: Collection[str]) -> Iterator[Problem]:
    """Extra options for programs that the scenario does not run, or that take none.

    Args:
        scenario: the scenario.
        programs: those that it runs, as the release tables call them.
    """
    runs = [_typed(program) for program in programs]
    expected = " or ".join(runs) or "none: no program of this scenario takes any"
    for program in scenario.engine.extra_args or {}:
        if program not in runs:
            yield Problem((*ARGS, program), "not a program of this scenario", program, expected)
    if scenario.engine.extra_yaml is not None and not runs:
        found = ", ".join(scenario.engine.extra_yaml)
        yield Problem(YAML, "no program of this scenario reads such a file", found, expected)


def _typed(program: str) -> str:
    """A program as `engine.extra_args` calls it: what a person types."""
    return program.partition(" ")[0]


def _as_declared(option: str) -> str:
    """The option with underscores, as nearly all of these programs' options are declared."""
    return "--" + option.removeprefix("--").replace("-", "_")


def _owners(scenario: Scenario, known: Release, program: str) -> dict[Keys, str]:
    """Keys of the file, in this release's spelling → the field of the scenario that says them."""
    found: dict[Keys, str] = {(key,): owner for key, owner in FACTS.keys.items()}
    own = scenario.engine.settings
    for name in (field.name for field in fields(EngineSettings)):
        for settings in (_ANY, own):
            value = getattr(settings, name)
            if value is None:
                continue
            one = replace(EngineSettings(), **{name: value})
            try:
                tree = llm_api_yaml.document(scenario, one, known, program)
            except CannotDo:
                continue  # this release has no key for it
            written = {keys: f"engine.settings.{name}" for keys, _ in leaves(tree)}
            found = written | found
    found[known.spelling.kv_cache_fraction] = "engine.settings.kv_cache_fraction"
    found.pop(known.spelling.kv_cache_reuse, None)
    return found


def _laid_over(tree: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(tree)
    for name, value in extra.items():
        below = found.get(name)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            found[name] = _laid_over(below, value)
        else:
            found[name] = value
    return found
