"""What one range of releases of a load client knows, and what its words mean. Values only."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from perfgate.engines.release_table import ReleaseTable


class BenchRelease(ReleaseTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of releases of a client of vLLM's family.

    `programs` holds the options that moved: `api` (which protocol is spoken), `dataset`,
    `temperature`, `warmups`, `ready_check`, `body` (more fields of every request's JSON),
    `heed_eos`, `no_stream`.

    Attributes:
        apis: program → endpoint of the server (``completions``, ``chat``) → the word for it.
        fixed_length: program → the ``--random-range-ratio`` with which every prompt and answer has
            the length that is asked for. The same word means opposite things.
        forces_eos: random prompts make the client ask that EOS is ignored, said or not.
        ready_check_s: seconds to wait for a first good answer, where the client no longer does
            unless it is told; None: it does, and ends with an error status where none comes.
        input_counted_by: who counts input tokens: the ``client``, before any chat template, or the
            ``server``, after it.
        output_counted_by: the ``server``, or nobody: where it sends no usage beside a text, a
            ``request`` counts with the length that it asked for.
    """

    title: ClassVar[str] = "the load client"

    apis: Mapping[str, Mapping[str, str]]
    fixed_length: Mapping[str, str]
    forces_eos: bool = False
    ready_check_s: int | None = None
    input_counted_by: Literal["client", "server"] = "client"
    output_counted_by: Literal["server", "request"] = "server"


class VllmBenchRelease(BenchRelease, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of vLLM's load clients: ``vllm bench serve``, and the script before it."""

    title: ClassVar[str] = "vLLM's load client"


class SglangBenchRelease(BenchRelease, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of ``sglang.bench_serving``."""

    title: ClassVar[str] = "SGLang's load client"
