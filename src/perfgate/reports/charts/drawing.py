"""Drawing: what vl-convert gives: a chart as SVG without a browser, and the scripts for one.

vl-convert is in the extra ``perfgate[report]``; without it charts are tables alone.
"""

from functools import lru_cache
from html import escape
from types import ModuleType

from perfgate.reports.charts.chart import Spec

INSTALL = "pip install 'perfgate[report]'"
_STATIC_WIDTH = 680  # pixels, of a chart that nothing can widen


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
