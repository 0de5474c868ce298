"""Which release of vLLM knows what: its tables, one per range of releases."""

from pathlib import Path

from perfgate.engines import table_lines
from perfgate.engines.option_check import Mismatch
from perfgate.engines.release_tables import ReleaseTables
from perfgate.engines.vllm.releases.table import Release

__all__ = ["Release", "all_releases", "read_tables", "release", "same_release", "told_by"]

_TABLES = ReleaseTables(
    Release,
    Path(__file__).parent,
    hint="use a newer release; the documents of the scenarios begin with 0.11",
    examples="0.11.0 or 0.33.0rc1",
)

read_tables = _TABLES.read
all_releases = _TABLES.all
release = _TABLES.release
uncovered = _TABLES.uncovered


def same_release(one: str, other: str) -> bool:
    """Whether two versions name one release; what follows a ``+`` names a build of it.

    Raises:
        InputError: one of them is no version.
    """
    return _TABLES.base(one) == _TABLES.base(other)


def told_by(version: str, mismatch: Mismatch) -> str:
    """The line of the tables that makes perfgate write something (`table_lines.told_by`)."""
    return table_lines.told_by(version, mismatch, _TABLES.folder)
