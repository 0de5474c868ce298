"""Which release of TensorRT-LLM knows what: its tables, one per range of releases."""

from pathlib import Path

from perfgate.engines.release_tables import ReleaseTables
from perfgate.engines.tensorrt_llm.releases.table import Release

__all__ = [
    "TABLES",
    "Release",
    "all_releases",
    "parse",
    "read_tables",
    "release",
    "same_release",
    "told_by",
    "uncovered",
]

TABLES = "PERFGATE_TENSORRT_LLM_TABLES"
_TABLES = ReleaseTables(
    Release,
    Path(__file__).parent,
    variable=TABLES,
    hint="use a newer container; the documents of the scenarios begin with 0.19",
)

read_tables = _TABLES.read
all_releases = _TABLES.all
release = _TABLES.release
uncovered = _TABLES.uncovered
parse = _TABLES.parse
same_release = _TABLES.same
told_by = _TABLES.told_by
