"""The YAML file behind `--extra_llm_api_options`: settings under the keys of one release."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import yaml

from perfgate.engines.refusal import refusal
from perfgate.engines.tensorrt_llm.table import EVAL, SERVE, TABLES, THROUGHPUT, Keys, Release
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, MoeLoadBalancer, Mtp, Scenario

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
    for field, spell in _SPELLERS.items():
        value = getattr(settings, field)
        if value is None:
            continue
        for keys, entry in spell(value, scenario, release, program):
            _put(tree, keys, entry)
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


Speller = Callable[[Any, Scenario, Release, str], Iterator[Entry]]


def _plain(field: str) -> Speller:
    """A setting that is one key with the setting's own value; `Spelling` calls it the same."""

    def spell(value: Any, scenario: Scenario, release: Release, _program: str) -> Iterator[Entry]:
        keys = getattr(release.spelling, field)
        if keys is None:
            raise _no_key(scenario, field, value, release)
        yield keys, asdict(value) if isinstance(value, MoeLoadBalancer) else value

    return spell


def _overlap(value: bool, _scenario: Scenario, release: Release, _program: str) -> Iterator[Entry]:
    spelling = release.spelling
    yield spelling.overlap, (not value) if spelling.overlap_inverted else value


def _graphs(
    graphs: CudaGraphs, _scenario: Scenario, release: Release, _program: str
) -> Iterator[Entry]:
    keys = release.spelling.graphs
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


def _moe_backend(
    value: str, scenario: Scenario, release: Release, _program: str
) -> Iterator[Entry]:
    known = release.moe_backends
    if known is not None and value not in known:
        expected = "one of " + ", ".join(sorted(known))
        raise refusal(scenario, "engine.settings.moe_backend", value, release, expected)
    yield release.spelling.moe_backend, value


def _torch_compile(
    value: bool, scenario: Scenario, release: Release, _program: str
) -> Iterator[Entry]:
    spelling = release.spelling
    if spelling.torch_compile is None:
        if value:
            raise _no_key(scenario, "torch_compile", value, release)
        return  # off in every release
    yield (
        spelling.torch_compile,
        spelling.torch_compile_on if value else spelling.torch_compile_off,
    )


def _mtp(mtp: Mtp, _scenario: Scenario, release: Release, _program: str) -> Iterator[Entry]:
    if mtp.layers:  # without the mapping, MTP is off in every release
        spelling = release.spelling
        yield (*spelling.mtp, spelling.mtp_algorithm), "MTP"
        yield (*spelling.mtp, spelling.mtp_layers), mtp.layers


def _chunked(value: bool, _scenario: Scenario, release: Release, program: str) -> Iterator[Entry]:
    spelling = release.spelling
    if program in (SERVE, EVAL):
        yield spelling.chunked_prefill, value
    elif (
        spelling.bench_chunked_prefill and value
    ):  # off by itself; later trtllm-bench has an option
        yield spelling.bench_chunked_prefill, value


def _remote_code(
    value: bool, _scenario: Scenario, release: Release, program: str
) -> Iterator[Entry]:
    # trtllm-serve has an option; trtllm-bench trusts by itself (`get_llm_args`).
    if program == THROUGHPUT and not value:
        yield release.spelling.trust_remote_code, False


_SPELLERS: dict[str, Speller] = {
    "attention_dp": _plain("attention_dp"),
    "cuda_graphs": _graphs,
    "kv_cache_dtype": _plain("kv_cache_dtype"),
    "iteration_log": _plain("iteration_log"),
    "stream_interval": _plain("stream_interval"),
    "moe_backend": _moe_backend,
    "moe_max_num_tokens": _plain("moe_max_num_tokens"),
    "moe_load_balancer": _plain("moe_load_balancer"),
    "attention_backend": _plain("attention_backend"),
    "mtp": _mtp,
    "overlap_scheduler": _overlap,
    "torch_compile": _torch_compile,
    "chunked_context": _chunked,
    "trust_remote_code": _remote_code,
}


def _put(tree: dict[str, Any], keys: Keys, value: Any) -> None:
    *path, last = keys
    for key in path:
        tree = tree.setdefault(key, {})
    tree[last] = value


def _no_key(scenario: Scenario, field: str, value: object, release: Release) -> Exception:
    expected = f"no {field}: perfgate knows no key for it in this release"
    return refusal(scenario, f"engine.settings.{field}", value, release, expected)
