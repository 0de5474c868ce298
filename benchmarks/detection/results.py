"""Results of the study: tables in small JSON files, one row a line, from which the page is made."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.core.files.durable_files import write_text

FOLDER = Path(__file__).with_name("results")

Row = dict[str, Any]


def save(name: str, rows: Sequence[Mapping[str, object]], folder: Path = FOLDER) -> None:
    """Write rows as ``NAME.json``; columns are those of all rows, in order of appearance."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = ",\n".join(json.dumps([_short(row.get(column)) for column in columns]) for row in rows)
    text = f'{{"columns": {json.dumps(columns)},\n"rows": [\n{lines}\n]}}\n'
    write_text(folder / f"{name}.json", text)


def load(name: str, folder: Path = FOLDER) -> list[Row]:
    """The rows of ``NAME.json``."""
    plain = json.loads((folder / f"{name}.json").read_text())
    return [dict(zip(plain["columns"], row, strict=True)) for row in plain["rows"]]


def _short(value: object) -> object:
    """Floats to seven significant digits: more is chance."""
    return float(f"{value:.7g}") if isinstance(value, float) else value
