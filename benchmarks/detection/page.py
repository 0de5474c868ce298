"""Page: docs/explanation/detection.md; the results write its tables and counted sentences.

The prose around them is written by hand in the page itself. What is between
``<!-- table: NAME -->`` and ``<!-- end -->`` is replaced. ``--tables`` prints every table, also
those that the page does not show.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.detection import real_tables, rival_tables, simulated_tables
from perfgate.core.files.durable_files import write_text

_BLOCK = re.compile(r"<!-- table: (?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
_BEGIN = re.compile(r"<!-- table: ([\w-]+) -->")

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
        ValueError: a table that the page asks for and nobody makes, twice, or without an end.
    """
    shown = [block["name"] for block in _BLOCK.finditer(text)]
    asked = _BEGIN.findall(text)
    wrong = sorted({name for name in asked if name not in TABLES or name not in shown})
    if wrong or len(set(asked)) != len(asked):
        raise ValueError(f"unknown, not ended or twice on the page: {wrong or sorted(asked)}")

    def made(found: re.Match[str]) -> str:
        name = found["name"]
        return f"<!-- table: {name} -->\n\n{TABLES[name](folder)}\n\n<!-- end -->"

    return _BLOCK.sub(made, text)


def all_tables(folder: Path) -> str:
    """Every table of the study, under its name."""
    return "\n\n".join(f"## {name}\n\n{made(folder)}" for name, made in TABLES.items())
