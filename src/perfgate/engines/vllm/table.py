"""What one range of vLLM releases knows and how it spells it. Values only, no versions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, structs

from perfgate.engines.release_tables import ReleaseTable, ReleaseTables
from perfgate.engines.served.description import Description, described

SERVE = "vllm serve"


class Defaults(Struct, frozen=True, forbid_unknown_fields=True):
    """What the server does when it is not told, of what moved between releases.

    Attributes:
        kv_cache_fraction: share of the GPU memory that it takes.
        kv_cache_reuse: whether its prefix cache is on.
        chunked_context: whether long prompts are prefilled in chunks; None: it depends.
        overlap_scheduler: whether it schedules asynchronously; None: it chooses.
        seed: seed of its random numbers; None: none.
    """

    kv_cache_fraction: float
    kv_cache_reuse: bool
    chunked_context: bool | None = None
    overlap_scheduler: bool | None = None
    seed: int | None = None


class CompilationKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys of the JSON value that says what is compiled and captured.

    Attributes:
        level: of how much is compiled: 0, nothing, up to 3.
        graph_mode: of how CUDA graphs are captured; None: there is none.
    """

    level: str
    graph_mode: str | None = None


class Release(ReleaseTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of vLLM releases that behave the same for perfgate.

    Attributes:
        defaults: what the server does when it is not told.
        compilation: keys of the value of the option ``compilation``.
        attention_variable: environment variable that names the kernels of the attention, where no
            option does.
        lone_graph_size_is_largest: the option of the sizes to capture takes a single one for the
            largest, below which it chooses.
    """

    title: ClassVar[str] = "vLLM"

    defaults: Defaults
    compilation: CompilationKeys
    attention_variable: str | None = None
    lone_graph_size_is_largest: bool = False

    def moved_defaults(self) -> Mapping[str, Any]:
        """See `ReleaseTable.moved_defaults`.

        How many requests and tokens it takes at once without being told depends on the GPU, too,
        and is left to it.
        """
        return structs.asdict(self.defaults)


FACTS = described(__file__, Description)
TABLES = ReleaseTables(
    Release,
    Path(__file__).with_name("releases"),
    hint="use a newer release; the documents of the scenarios begin with 0.11",
    examples="0.11.0 or 0.33.0rc1",
)
