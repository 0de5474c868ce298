"""Page: the templates filled with a report. Everything in it is escaped but our own style, our own
script, the charts' bundle and the charts' static SVG.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from perfgate.core.redaction import visible
from perfgate.core.verdict import MEANINGS
from perfgate.reports import overview
from perfgate.reports.charts import Chart, ChartSet
from perfgate.reports.page.first_screen import first_screen
from perfgate.reports.page.results_table import result_rows
from perfgate.reports.page.scenario_section import machine_rows, scenario_sections
from perfgate.reports.page.signs import SIGNS, result_sign
from perfgate.reports.run_report import RunReport
from perfgate.reports.templating import environment

_HERE = Path(__file__).parent


def page_of(report: RunReport, charts: ChartSet, bundle: Callable[[], str | None]) -> str:
    """The page.

    Args:
        report: the run, or several as one.
        charts: its charts.
        bundle: gives the scripts that draw them, in seconds; None: there are only their tables.
    """
    drawn = [*charts.first, *(one for id_ in _scenarios(report) for one in charts.of_scenario(id_))]
    script = _own("page.js")
    drawing = bundle() if drawn else None
    scripts = [script, *([drawing] if drawing else [])]
    specs = specs_text(drawn) if drawing else ""
    template = environment(_HERE / "templates").get_template("page.html")
    return template.render(
        report=report,
        first=first_screen(report),
        results=result_rows(report.results),
        sections=scenario_sections(report),
        charts=charts,
        chart_rows=rows_of_each(drawn),
        specs=Markup(specs) if len(specs) <= PLAIN else None,  # noqa: S704
        packed_specs=packed(specs) if len(specs) > PLAIN else None,
        bundle=packed(drawing) if drawing else None,
        machine_rows=machine_rows,
        style=Markup(_own("page.css")),  # noqa: S704
        script=Markup(script),  # noqa: S704
        allowed=" ".join(f"'sha256-{_sha256(one)}'" for one in scripts),
        static=_static,
        overview=overview,
        sign_of=result_sign,
        legend=[(SIGNS[one], MEANINGS[one]) for one in MEANINGS],
    )


def _scenarios(report: RunReport) -> Sequence[str]:
    return list(dict.fromkeys(one.scenario for one in report.results))


def _static(chart: Chart) -> Markup | None:
    return None if chart.svg is None else Markup(chart.svg)  # noqa: S704


def _sha256(script: str) -> str:
    """As a content security policy names a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _own(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


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
