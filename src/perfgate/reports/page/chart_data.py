"""Chart data: what the page carries for its charts: their specs, and how many rows of tables."""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence

from perfgate.core.redaction import visible
from perfgate.reports.charts import Chart

PLAIN = 200_000  # characters of specs that are put into the page as they are; more are packed
TABLE_TEXT = 180_000  # characters in the tables of all charts of a page, without markup
_FEWEST_ROWS = 8  # of one table, however many there are


def specs_text(charts: Sequence[Chart]) -> str:
    """The specs, id → spec, as JSON that can stand in an HTML script element."""
    specs = {chart.id: _shown(chart.spec) for chart in charts}
    text = json.dumps(specs, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for one in "<>&\u2028\u2029":
        text = text.replace(one, f"\\u{ord(one):04x}")
    return text


def packed(text: str) -> str:
    """Gzip in base64; the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def rows_of_each(charts: Sequence[Chart]) -> int:
    """How many rows a chart's table may have, so that a page with many charts stays small."""
    rows = [row for one in charts for row in one.table.rows]
    most = max((len(one.table.rows) for one in charts), default=0)
    text = sum(len(cell) for row in rows for cell in row)
    if text <= TABLE_TEXT:
        return most
    return max(_FEWEST_ROWS, TABLE_TEXT * len(rows) // text // len(charts))


def _shown(value: object) -> object:
    """The same plain value; no text in it has a character that is not seen."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {name: _shown(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    return value
