"""Which release of SGLang knows what: its tables, one per range of releases."""

from pathlib import Path

from perfgate.engines.release_tables import ReleaseTables
from perfgate.engines.sglang.releases.table import Release

TABLES = ReleaseTables(
    Release,
    Path(__file__).parent,
    variable="PERFGATE_SGLANG_TABLES",
    hint="use a newer release; the documents of the scenarios begin with 0.5.3",
    examples="0.5.3 or 0.5.4.post1",
)
