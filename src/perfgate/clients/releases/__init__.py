"""Which release of a load client knows what: tables of the clients of vLLM and of SGLang.

A client has a release of its own: it measures any engine's server, and stays the same while the
engine's release moves. The options that never moved stand in `serving_client`.
"""

from pathlib import Path
from typing import TypeVar

from perfgate.clients.releases.table import BenchRelease, SglangBenchRelease, VllmBenchRelease
from perfgate.core.errors import InputError
from perfgate.engines.release_tables import ReleaseTables

__all__ = ["SGLANG", "VLLM", "BenchRelease", "release"]

T = TypeVar("T", bound=BenchRelease)

_OTHER = "use another release of the client: it need not be the engine's"
VLLM = ReleaseTables(
    VllmBenchRelease, Path(__file__).parent / "vllm", hint=_OTHER, examples="0.11.0"
)
SGLANG = ReleaseTables(
    SglangBenchRelease, Path(__file__).parent / "sglang", hint=_OTHER, examples="0.5.3"
)


def release(tables: ReleaseTables[T], version: str, program: str) -> T:
    """The table that holds for a release of a client.

    Args:
        tables: of the client.
        version: as the client tells it, or the document; empty: not known, the newest that has the
            program.
        program: the client's program, as its recorded pages name it.

    Raises:
        InputError: it is no version, too old, or that release has no such program.
    """
    having = [one for one in tables.all() if program in one.programs]
    if not version:
        return having[-1]
    try:
        found = tables.release(version)
    except InputError as error:
        raise InputError(
            error.problem,
            field="client version",
            found=error.found,
            expected=error.expected,
            hint=_OTHER,
        ) from error
    if program not in found.programs:
        later = [one.since for one in tables.all() if one not in having]
        gone = [since for since in later if tables.base(since) > tables.base(having[-1].since)]
        raise InputError(
            f"this release has no usable {program}",
            field="client version",
            found=version,
            expected=f"{having[0].since} or later" + (f", before {gone[0]}" if gone else ""),
            hint="clients vllm-benchmark-serving and vllm-bench are the same client, before and "
            "after it became a command of vllm",
        )
    return found
