"""Style: what all charts have in common: colours for light and dark, fonts, sizes.

Text and axes have the colour of the text around the chart (`currentColor`). The colours of marks
have at least 3:1 against white and against #15181d, so that one SVG serves both.
"""

from collections.abc import Mapping
from typing import Any

from perfgate.reports.charts.chart import SCHEMA, Spec

NEW = "#c4621a"  # this run
STORED = "#3a7fc4"  # baselines and earlier runs
BAD = "#d1495b"
QUIET = "#7d8590"  # bands, rules, what stands behind

_TEXT = "currentColor"
_FONT = "system-ui, sans-serif"
_CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _TEXT,
        "titleColor": _TEXT,
        "domainColor": QUIET,
        "tickColor": QUIET,
        "gridColor": QUIET,
        "gridOpacity": 0.25,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "legend": {
        "labelColor": _TEXT,
        "titleColor": _TEXT,
        "labelFontSize": 12,
        "orient": "bottom",
        "direction": "horizontal",
        "columns": 2,
        "symbolStrokeWidth": 2,
        "symbolOpacity": 1,
    },
    "text": {"color": _TEXT, "fontSize": 12},
    "aria": True,
}


def layered(description: str, layers: list[Spec], **more: Any) -> dict[str, Any]:
    """A spec of layers, in the common style.

    Args:
        description: what a screen reader tells of the whole.
        layers: from the bottom to the top.
        more: fields of the spec.
    """
    return {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": dict(_CONFIG),
        "layer": layers,
        **more,
    }
