"""What one range of SGLang releases knows and how it spells it. Values only, no versions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from perfgate.engines.release_tables import ReleaseTable, ReleaseTables
from perfgate.engines.served.description import Description, described

SERVE = "sglang.launch_server"


class Release(ReleaseTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of releases that behave the same for perfgate.

    Attributes:
        attention_dp_alone: what becomes of data parallelism of the attention that is asked for
            without its number of parts: as many parts as the tensor parallelism has ranks; the
            server ends with an error; or it is switched off without a word.
        overlap_with_speculation: whether the overlap scheduler stays on while EAGLE drafts.
    """

    title: ClassVar[str] = "SGLang"

    attention_dp_alone: Literal["all_ranks", "fails", "off"]
    overlap_with_speculation: bool = False

    def moved_defaults(self) -> Mapping[str, Any]:
        """See `ReleaseTable.moved_defaults`: of the overlap scheduler under speculation.

        All other defaults are the same in every release, the seed (a new one at each start) among
        them, or follow from the GPU's memory.
        """
        return {"overlap_scheduler": self.overlap_with_speculation}


FACTS = described(__file__, Description)
TABLES = ReleaseTables(
    Release,
    Path(__file__).with_name("releases"),
    variable="PERFGATE_SGLANG_TABLES",
    hint="use a newer release; the documents of the scenarios begin with 0.5.3",
    examples="0.5.3 or 0.5.4.post1",
)
