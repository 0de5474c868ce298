"""The YAML file behind `--extra_llm_api_options`: settings under the keys of one release."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import yaml

from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.table import (
    EVAL,
    SERVE,
    TABLES,
    THROUGHPUT,
    GraphKeys,
    Keys,
    Release,
    Spelling,
)
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, MoeLoadBalancer, Scenario

FILE = "extra-llm-api-config.yml"

Entry = tuple[Keys, Any]
"""A place in the file and its value."""


def document(
    scenario: Scenario, settings: EngineSettings, release: Release, program: str
) -> dict[str, Any]:
    """The file's content as plain values; empty: no file is needed.

    Args:
        scenario: the scenario, for messages.
        settings: its settings, pinned or not.
        release: the release that reads the file.
        program: the program that does; some settings have an option there and need no key.

    Raises:
        InputError: the release has no key for a setting.
    """
    tree: dict[str, Any] = {}
    for keys, value in _entries(scenario, settings, release, program):
        _put(tree, keys, value)
    return with_kv_cache_kept(tree, scenario, settings, release, program)


def with_kv_cache_kept(
    tree: dict[str, Any],
    scenario: Scenario,
    settings: EngineSettings,
    release: Release,
    program: str,
) -> dict[str, Any]:
    """The file, saying again what the command line says of the KV cache where it has a mapping.

    The mapping takes the place of the command line's own before 1.3, share and block reuse with
    it, so that one call would measure different things at two releases. At the document's own
    release the command stays the document's; a scenario of no release or of a commit, whose key
    may have been another one and have taken nothing away, or with keys of its own in the file,
    gets what it asks for.
    """
    documented, place = scenario.source.engine_version, release.spelling.kv_cache_fraction[:-1]
    there = _at(tree, place)
    is_other = documented is not None and not TABLES.same(documented, release.version)
    source = scenario.source
    is_ours = (
        documented is None
        or source.engine_commit is not None
        or scenario.engine.extra_yaml is not None
    )
    is_said = is_other or (is_ours and release.yaml_merge == "shallow")
    if there is None or not is_said:
        return tree
    kept: dict[str, Any] = {
        release.spelling.kv_cache_reuse[-1]: release.defaults[program].kv_cache_reuse
    }
    share = settings.kv_cache_fraction
    if share is not None:
        kept = {release.spelling.kv_cache_fraction[-1]: share, **kept}
    return _replaced(tree, place, {**there, **{k: v for k, v in kept.items() if k not in there}})


def _replaced(tree: Mapping[str, Any], keys: Keys, value: Any) -> dict[str, Any]:
    first, *rest = keys
    return {**tree, first: _replaced(tree[first], tuple(rest), value) if rest else value}


def _at(tree: Mapping[str, Any], keys: Keys) -> dict[str, Any] | None:
    """The mapping at a place of the file; None: there is none."""
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def text(tree: dict[str, Any]) -> str:
    """The file as text, keys in the order of `tree`."""
    return yaml.safe_dump(tree, sort_keys=False, default_flow_style=False)


def _entries(
    scenario: Scenario, settings: EngineSettings, release: Release, program: str
) -> Iterator[Entry]:
    """Each setting under its keys, in the order of the file."""
    spelling, plain = release.spelling, partial(_plain, scenario, settings, release)
    yield from plain("attention_dp")
    if settings.cuda_graphs is not None:
        yield from _graphs(settings.cuda_graphs, spelling.graphs)
    yield from plain("kv_cache_dtype", "iteration_log", "stream_interval")
    experts, known = settings.moe_backend, release.moe_backends
    if experts is not None and known is not None and experts not in known:
        expected = "one of " + ", ".join(sorted(known))
        raise refusal(scenario, "engine.settings.moe_backend", experts, release, expected)
    yield from plain("moe_backend", "moe_max_num_tokens", "moe_load_balancer", "attention_backend")
    if settings.mtp is not None and settings.mtp.layers:  # off in every release without it
        yield (*spelling.mtp, spelling.mtp_algorithm), "MTP"
        yield (*spelling.mtp, spelling.mtp_layers), settings.mtp.layers
    if settings.overlap_scheduler is not None:
        yield spelling.overlap, settings.overlap_scheduler != spelling.overlap_inverted
    compiled = settings.torch_compile
    if compiled is not None and spelling.torch_compile is not None:
        value = spelling.torch_compile_on if compiled else spelling.torch_compile_off
        yield spelling.torch_compile, value
    elif compiled:  # off in every release
        raise _no_key(scenario, "torch_compile", compiled, release)
    yield from _of_program(settings, spelling, program)


def _plain(
    scenario: Scenario, settings: EngineSettings, release: Release, *names: str
) -> Iterator[Entry]:
    """Settings that are one key with their own value; `Spelling` calls them the same."""
    for name in names:
        value, keys = getattr(settings, name), getattr(release.spelling, name)
        if value is not None and keys is None:
            raise _no_key(scenario, name, value, release)
        if value is not None:
            yield keys, asdict(value) if isinstance(value, MoeLoadBalancer) else value


def _of_program(settings: EngineSettings, spelling: Spelling, program: str) -> Iterator[Entry]:
    """What is a key for some of the programs, and an option of the others."""
    chunked = settings.chunked_context
    if chunked is not None and program in (SERVE, EVAL):
        yield spelling.chunked_prefill, chunked
    elif chunked and spelling.bench_chunked_prefill:  # later trtllm-bench has an option
        yield spelling.bench_chunked_prefill, chunked
    # trtllm-serve has an option; trtllm-bench trusts by itself (`get_llm_args`).
    if program == THROUGHPUT and settings.trust_remote_code is False:
        yield spelling.trust_remote_code, False


def _graphs(graphs: CudaGraphs, keys: GraphKeys) -> Iterator[Entry]:
    if keys.switch is not None:
        yield (*keys.at, keys.switch), graphs.enabled
    else:
        yield keys.at, {} if graphs.enabled else None
    if not graphs.enabled:
        return
    if graphs.padding is not None:
        yield (*keys.at, keys.padding), graphs.padding
    if graphs.max_batch_size is not None:
        yield (*keys.at, keys.max_batch_size), graphs.max_batch_size
    if graphs.batch_sizes:
        yield (*keys.at, keys.batch_sizes), list(graphs.batch_sizes)


def _put(tree: dict[str, Any], keys: Keys, value: Any) -> None:
    *path, last = keys
    for key in path:
        tree = tree.setdefault(key, {})
    tree[last] = value


def _no_key(scenario: Scenario, field: str, value: object, release: Release) -> Exception:
    expected = f"no {field}: perfgate knows no key for it in this release"
    return refusal(scenario, f"engine.settings.{field}", value, release, expected)
