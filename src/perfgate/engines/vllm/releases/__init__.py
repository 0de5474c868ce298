"""Which release of vLLM knows what: its tables, one per range of releases."""

from pathlib import Path

from perfgate.engines.release_tables import ReleaseTables
from perfgate.engines.vllm.releases.table import Release

TABLES = ReleaseTables(
    Release,
    Path(__file__).parent,
    hint="use a newer release; the documents of the scenarios begin with 0.11",
    examples="0.11.0 or 0.33.0rc1",
)
