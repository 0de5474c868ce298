"""How commands print: a table for people, JSON for scripts."""

import argparse
import json
from collections.abc import Sequence


def add_format(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument(
        "--format", choices=["text", "json"], default="text", help="for people, or for scripts"
    )


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table; the last column may be of any width."""
    widths = [
        max([len(column), *(len(row[position]) for row in rows)])
        for position, column in enumerate(columns)
    ]
    for row in (columns, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())
