"""Tables: one renderer for terminals, one for Markdown. No cell is cut, and no number is wrapped.

A table that is wider than its terminal is written as a block for each row instead.
"""

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

Row = Sequence[str]

_WIDTH = 100_000  # of the console that draws: a table is as wide as its cells


def text_table(
    columns: Row,
    rows: Sequence[Row],
    *,
    right: Collection[int] = (),
    ruled: bool = False,
    width: int | None = None,
) -> str:
    """A table for a terminal.

    Args:
        columns: the headings.
        rows: as many cells each.
        right: positions of the columns that are set to the right.
        ruled: with a line below the headings.
        width: the widest that a line may be; None: as `terminal_width` says.

    Raises:
        ValueError: a row is longer or shorter than the headings.
    """
    drawn = Table(box=box.SIMPLE_HEAD if ruled else None, show_edge=False, pad_edge=False)
    for place, column in enumerate(columns):
        drawn.add_column(column, justify="right" if place in right else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*(cell for _, cell in zip(columns, row, strict=True)))
    out = io.StringIO()
    console = Console(
        file=out, width=_WIDTH, color_system=None, markup=False, emoji=False, highlight=False
    )
    console.print(drawn)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    widest = width or terminal_width()
    if widest is not None and rows and max(map(len, lines)) > widest:
        lines = _blocks(columns, rows, widest)
    return "\n".join(lines)


def terminal_width() -> int | None:
    """How wide a line may be: as COLUMNS says, else as wide as the terminal; None elsewhere."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return int(said)
    if sys.stdout is None or sys.stdout.closed or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _blocks(columns: Row, rows: Sequence[Row], width: int) -> list[str]:
    """A block for each row: its first cell, below it the other ones by their headings.

    Only between words is a line broken: a number, a path or an id stays whole.
    """
    lines: list[str] = []
    for first, *others in rows:
        lines += ["", first.strip()] if lines else [first.strip()]
        for column, cell in zip(columns[1:], others, strict=True):
            if cell.strip():
                told = f"{column.strip()}: {' '.join(cell.split())}"
                lines += textwrap.wrap(
                    told,
                    width,
                    initial_indent="  ",
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
    return lines


def markdown_table(columns: Row, rows: Sequence[Row], *, right: Collection[int] = ()) -> list[str]:
    """The lines of a table in Markdown; arguments as of `text_table`."""
    rule = "".join("--:|" if place in right else "---|" for place in range(len(columns)))
    heading, *lines = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in (columns, *rows)
    )
    return [heading, f"|{rule}", *lines]
