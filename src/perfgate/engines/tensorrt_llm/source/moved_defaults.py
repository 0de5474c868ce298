"""Defaults that a source tree has and the release table does not believe."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from perfgate.engines.definitions import YAML, Definitions
from perfgate.engines.tensorrt_llm.releases.table import SERVE, THROUGHPUT, Release

_SAMPLERS = {"TorchSampler": "torch", "auto": "torch", "TRTLLMSampler": "trtllm"}


class MovedDefault(NamedTuple):
    """A default that is not what the table says.

    Attributes:
        program: the program, or ``LLM-API YAML``.
        place: the option or key.
        found: the source's default.
        expected: what the table believes.
        known_at: file and line that declare it.
    """

    program: str
    place: str
    found: str
    expected: str
    known_at: str


def moved_defaults(definitions: Definitions, release: Release) -> tuple[MovedDefault, ...]:
    """The defaults of `definitions` that differ from what `release` believes.

    Only what both tell is compared: ``PDL`` is an environment variable, and CUDA graphs of
    `trtllm-bench` depend on its batch size.
    """
    return tuple(one for one in _compared(definitions, release) if one.found != one.expected)


def _compared(definitions: Definitions, release: Release) -> Iterator[MovedDefault]:
    bench, serve = release.defaults.get(THROUGHPUT), release.defaults.get(SERVE)
    page = f"{SERVE} serve"
    if bench is not None:
        yield from _option(definitions, THROUGHPUT, "--backend", bench.backend)
        yield from _option(
            definitions, THROUGHPUT, "--enable_chunked_context", str(bench.chunked_context)
        )
    yield from _option(definitions, THROUGHPUT, "--warmup", str(release.bench_warmup))
    if serve is None:
        return
    yield from _option(definitions, page, "--backend", serve.backend)
    keys = release.spelling
    yield from _key(definitions, keys.chunked_prefill, str(serve.chunked_context))
    yield from _key(definitions, ("sampler_type",), serve.sampler)
    overlaps = serve.overlap_scheduler != keys.overlap_inverted
    yield from _key(definitions, keys.overlap, str(overlaps))
    if keys.graphs.at and keys.graphs.switch is None:
        yield from _key(definitions, keys.graphs.at, serve.cuda_graphs)


def _option(
    definitions: Definitions, program: str, spelling: str, expected: str
) -> Iterator[MovedDefault]:
    option = definitions.option(program, spelling)
    if option is None or option.default is UNSET:
        return
    told = "tensorrt" if option.default is None and spelling == "--backend" else option.default
    yield MovedDefault(program, spelling, str(told), expected, option.place)


def _key(definitions: Definitions, path: tuple[str, ...], expected: str) -> Iterator[MovedDefault]:
    keys = definitions.keys or {}
    *above, last = path
    for name in above:
        keys = next(iter(keys[name].models.values()), {}) if name in keys else {}
    key = keys.get(last)
    if key is None or key.default is UNSET:
        return
    told = key.default
    if last == "sampler_type":
        told = _SAMPLERS.get(str(told), told)
    elif isinstance(told, dict) or told is None:
        told = "off" if told is None else "on"
    yield MovedDefault(YAML, ".".join(path), str(told), expected, key.place)
