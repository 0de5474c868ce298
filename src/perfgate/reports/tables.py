"""Tables: one renderer for terminals, one for Markdown. No cell is cut, and no number is wrapped.

In a terminal that is narrower than the table, texts are broken between words, or each row becomes a
block of lines.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
from itertools import chain, zip_longest

from rich.cells import cell_len

from perfgate.core.redaction import visible

Row = Sequence[str]

_GAP = 2  # blanks between columns; one more where a line is below the headings
_MOST_LINES = 3  # of a row, before a block of its own reads better


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
    lines = _drawn(columns, rows, right, ruled=ruled)
    widest = width or terminal_width()
    if widest is not None and rows and _longest(lines) > widest:
        wrapped = _wrapped(columns, rows, right, widest - _longest(lines))
        lines = _drawn(columns, wrapped, right, ruled=ruled)
        if _longest(lines) > widest or len(lines) > _MOST_LINES * len(rows) + 2:
            lines = _blocks(columns, rows, widest)
    return "\n".join(lines)


def _drawn(columns: Row, rows: Sequence[Row], right: Collection[int], *, ruled: bool) -> list[str]:
    table = [
        [visible(cell).expandtabs().split("\n") for _, cell in zip(columns, row, strict=True)]
        for row in (columns, *rows)
    ]
    widths = [max(map(cell_len, chain(*cells))) for cells in zip(*table, strict=True)]
    gap = " " * (_GAP + ruled)
    lines = []
    for row in table:
        for parts in zip_longest(*row, fillvalue=""):
            padded = []
            for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
                text = part.rstrip() if place in right else part
                blanks = " " * (width - cell_len(text))
                padded.append(blanks + text if place in right else text + blanks)
            lines.append(gap.join(padded).rstrip())
    if ruled:
        lines.insert(1, "─" * (sum(widths) + len(gap) * (len(widths) - 1)))
    return lines


def _wrapped(
    columns: Row, rows: Sequence[Row], right: Collection[int], more: int
) -> list[list[str]]:
    """The rows, with the widest column of texts broken between words so that `more` is saved.

    Args:
        more: how many characters wider the table may be: below zero.
    """
    widths = [
        0 if place in right else max(cell_len(row[place]) for row in rows)
        for place in range(len(columns))
    ]
    widest = widths.index(max(widths))
    width = max(1, widths[widest] + more)
    return [
        [
            "\n".join(_folded(cell, width)) if place == widest else cell
            for place, cell in enumerate(row)
        ]
        for row in rows
    ]


def _folded(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    """The text in lines, broken between words alone: numbers, paths and ids stay whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _longest(lines: Sequence[str]) -> int:
    return max(map(cell_len, lines))


def terminal_width() -> int | None:
    """How wide a line may be: as COLUMNS says, else as wide as the terminal; None elsewhere.

    To its workers pytest-xdist says 80 where there is no terminal at all, so that theirs counts for
    nothing.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return None
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return int(said)
    if sys.stdout is None or sys.stdout.closed or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _blocks(columns: Row, rows: Sequence[Row], width: int) -> list[str]:
    """A block for each row: its first cell, below it the other ones by their headings."""
    lines: list[str] = []
    for first, *others in rows:
        lines += ["", first.strip()] if lines else [first.strip()]
        for column, cell in zip(columns[1:], others, strict=True):
            if cell.strip():
                text = f"{column.strip()}: {' '.join(cell.split())}"
                lines += _folded(text, width, first="  ", later="    ")
    return lines


def markdown_table(columns: Row, rows: Sequence[Row], *, right: Collection[int] = ()) -> list[str]:
    """The lines of a table in Markdown; arguments as of `text_table`."""
    rule = "".join("--:|" if place in right else "---|" for place in range(len(columns)))
    heading, *lines = (
        "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in row) + " |"
        for row in (columns, *rows)
    )
    return [heading, f"|{rule}", *lines]
