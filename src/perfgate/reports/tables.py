"""Tables: one renderer for terminals, one for Markdown. Neither cuts or wraps a cell."""

import io
from collections.abc import Collection, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

Row = Sequence[str]

_WIDTH = 100_000  # of the console that draws: a table is as wide as its cells


def text_table(
    columns: Row, rows: Sequence[Row], *, right: Collection[int] = (), ruled: bool = False
) -> str:
    """A table for a terminal.

    Args:
        columns: the headings.
        rows: as many cells each.
        right: positions of the columns that are set to the right.
        ruled: with a line below the headings.

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
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def markdown_table(columns: Row, rows: Sequence[Row], *, right: Collection[int] = ()) -> list[str]:
    """The lines of a table in Markdown; arguments as of `text_table`."""
    rule = "".join("--:|" if place in right else "---|" for place in range(len(columns)))
    heading, *lines = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in (columns, *rows)
    )
    return [heading, f"|{rule}", *lines]
