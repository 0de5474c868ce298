"""Page: docs/explanation/detection.md; the results write its tables and counted sentences.

The prose around them is written by hand in the page itself. What stands between
``<!-- table: NAME -->`` and ``<!-- end -->`` is replaced.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.detection import real_tables, rival_tables, simulated_tables
from perfgate.core.durable_files import write_text

_BLOCK = re.compile(r"<!-- table: (?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)

TABLES: Mapping[str, Callable[[Path], str]] = {
    **simulated_tables.TABLES,
    **rival_tables.TABLES,
    **real_tables.TABLES,
}


def write(folder: Path, path: Path) -> None:
    """Write the page again from the results in `folder`."""
    write_text(path, render(path.read_text(), folder))


def render(text: str, folder: Path) -> str:
    """The page's text with every table made again.

    Raises:
        ValueError: a table that the page does not show, or one that it asks for and nobody makes.
    """
    shown = [found["name"] for found in _BLOCK.finditer(text)]
    if sorted(shown) != sorted(TABLES):
        wrong = sorted(set(shown) ^ set(TABLES)) or "one of them twice"
        raise ValueError(f"tables of the page and of the study differ: {wrong}")

    def made(found: re.Match[str]) -> str:
        name = found["name"]
        return f"<!-- table: {name} -->\n\n{TABLES[name](folder)}\n\n<!-- end -->"

    return _BLOCK.sub(made, text)
