"""Which release of SGLang knows what: its tables, one per range of releases."""

from pathlib import Path

from perfgate.engines.release_tables import ReleaseTables
from perfgate.engines.sglang.releases.table import Release

__all__ = [
    "TABLES",
    "Release",
    "all_releases",
    "parse",
    "release",
    "same_release",
    "told_by",
    "uncovered",
]

TABLES = "PERFGATE_SGLANG_TABLES"
_TABLES = ReleaseTables(
    Release,
    Path(__file__).parent,
    variable=TABLES,
    hint="use a newer release; the documents of the scenarios begin with 0.5.3",
    examples="0.5.3 or 0.5.4.post1",
)

all_releases = _TABLES.all
release = _TABLES.release
uncovered = _TABLES.uncovered
parse = _TABLES.parse
same_release = _TABLES.same
told_by = _TABLES.told_by
