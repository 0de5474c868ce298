"""Chart: a Vega-Lite spec and the same numbers as a table; vl-convert draws it without a browser.

A spec is a template: what all specs have in common is ``chart.json``. vl-convert is in the extra
``perfgate[report]``; without it charts are tables alone.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2

Spec = Mapping[str, Any]
INSTALL = "pip install 'perfgate[report]'"
_STATIC_WIDTH = 680  # pixels, of a chart that nothing can widen


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


def spec(name: str, title: str, values: Sequence[Mapping[str, Any]], **more: Any) -> Spec:
    """The spec of that name.

    Args:
        name: of its template.
        title: what a screen reader tells of the whole.
        values: its data.
        more: what else the template shows.
    """
    text = _templates().get_template(f"{name}.json").render(title=title, values=values, **more)
    made: Spec = json.loads(text)
    return made


@cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (JSON: what is not ours is encoded by `tojson`)
    )
    made.filters["of"] = lambda word, table: table[word]
    return made


def rounded(value: float) -> float:
    """The value to six digits: more than a drawing shows."""
    return float(f"{value:.6g}")


def why_none() -> str:
    """Why charts cannot be drawn, with the fix; empty: they can."""
    if _vl_convert() is not None:
        return ""
    return f"no charts, only their tables: vl-convert is not installed; fix: {INSTALL}"


@lru_cache(maxsize=1)
def bundle() -> str | None:
    """The scripts that draw charts in a browser (Vega, Vega-Lite, Vega-Embed), about 0.9 MB.

    None: vl-convert is not installed.
    """
    library = _vl_convert()
    return None if library is None else str(library.javascript_bundle())


def svg_of(spec: Spec) -> str | None:
    """The chart as an ``<svg>`` element; texts in it are escaped. None: vl-convert is missing."""
    library = _vl_convert()
    if library is None:
        return None
    drawn = str(library.vegalite_to_svg({**spec, "width": _STATIC_WIDTH}, allowed_base_urls=[]))
    label = escape(str(spec.get("description", "")), quote=True)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _vl_convert() -> ModuleType | None:
    try:
        import vl_convert  # an extra, and slow to load
    except ImportError:
        return None
    return vl_convert
