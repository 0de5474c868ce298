"""Chart: a Vega-Lite spec and the same numbers as a table."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Spec = Mapping[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing reads it from there


@dataclass(frozen=True)
class ChartTable:
    """The data of a chart, for those who do not see it, as texts.

    Attributes:
        columns: headings, with units.
        rows: as many texts each as there are columns.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        id: safe as an id in HTML, unique in a report.
        title: one line; may hold hostile names.
        spec: Vega-Lite, plain values; as wide as what it is drawn in.
        table: its data.
        svg: drawn without a browser, to be put into HTML as it is; None: it is not drawn yet.
    """

    id: str
    title: str
    spec: Spec
    table: ChartTable
    svg: str | None = None


def chart_id(kind: str, *names: str) -> str:
    """An id made of what may be any text: ``history-0a1b2c3d4e5f``."""
    return f"{kind}-{hashlib.sha256(chr(0).join(names).encode()).hexdigest()[:12]}"
