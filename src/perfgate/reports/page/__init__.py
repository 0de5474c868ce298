"""Page: a run's report as one HTML file: its templates filled with the report.

Everything in it is escaped but our own style, our own script, the charts' bundle and the charts'
static SVG.
"""

import base64
import gzip
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import jinja2
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from perfgate.core.verdict import MEANINGS
from perfgate.reports import overview
from perfgate.reports.charts import Chart, ChartSet
from perfgate.reports.figures import loss
from perfgate.reports.formats.base import shown
from perfgate.reports.outcome_text import MARKS
from perfgate.reports.page import sections
from perfgate.reports.page.sections import SIGNS, sign, status_sign
from perfgate.reports.run_report import RunReport
from perfgate.reports.templating import environment
from perfgate.runs.exit_status import Event, decision

_HERE = Path(__file__).parent
PLAIN = 200_000  # characters of specs that are put into the page as they are; more are packed
TABLE_TEXT = 180_000  # characters in the tables of all charts of a page, without markup
_FEWEST_ROWS = 8  # of one table, however many there are
_ROWS = 3_000  # metrics of a page that have a row each, before those not compared share a line


def page_of(report: RunReport, charts: ChartSet, bundle: Callable[[], str | None]) -> str:
    """The page.

    Args:
        report: the run, or several as one.
        charts: its charts.
        bundle: gives the scripts that draw them, in seconds; None: there are only their tables.
    """
    scenarios = dict.fromkeys(one.scenario for one in report.results)
    drawn = [*charts.first, *(one for id_ in scenarios for one in charts.of_scenario(id_))]
    script = _own("page.js")
    drawing = bundle() if drawn else None
    specs = specs_text(drawn) if drawing else ""
    anchors = {one.test: f"t{place}" for place, one in enumerate(report.results)}
    return (
        _templates()
        .get_template("page.html")
        .render(
            report=report,
            overview=overview,
            sections=sections,
            ended=status_sign(report.status),
            next_step=decision(Event.PULL_REQUEST, report.status).sentence if report.status else "",
            anchor_of=lambda result: anchors[result.test],
            places={name: place for place, name in enumerate(scenarios)},
            log_room=sections.log_room(report),
            is_long=sum(len(one.measured) for one in report.results) > _ROWS,
            charts=charts,
            chart_rows=rows_of_each(drawn),
            specs=Markup(specs) if len(specs) <= PLAIN else None,  # noqa: S704
            packed_specs=packed(specs) if len(specs) > PLAIN else None,
            bundle=packed(drawing) if drawing else None,
            style=Markup(_own("page.css")),  # noqa: S704
            script=Markup(script),  # noqa: S704
            allowed=[_sha256(one) for one in (script, drawing) if one],
        )
    )


@cache
def _templates() -> jinja2.Environment:
    made = environment(_HERE / "templates")
    made.filters |= {
        "sign": sign,
        "against": lambda one: sections.AGAINST[getattr(one, "against", "baseline")],
        "gauge": sections.gauge,
        "counts": sections.counts,
        "groups": sections.groups,
        "leading": sections.leading,
        "worst_first": lambda results: sorted(results, key=lambda result: sign(result).rank),
        "loss": lambda one: "" if loss(one) is None else f"{loss(one):.6f}",
        "drawing": lambda chart: None if chart.svg is None else Markup(chart.svg),  # noqa: S704
    }
    made.globals |= {"MARKS": MARKS, "legend": [(SIGNS[one], MEANINGS[one]) for one in MEANINGS]}
    return made


def _sha256(script: str) -> str:
    """As a content security policy names a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _own(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def specs_text(charts: Sequence[Chart]) -> str:
    """The specs, id → spec, as JSON that can stand in an HTML script element."""
    specs = shown({chart.id: dict(chart.spec) for chart in charts})
    return htmlsafe_json_dumps(specs, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def packed(text: str) -> str:
    """Gzip in base64; the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def rows_of_each(charts: Sequence[Chart]) -> int:
    """How many rows a chart's table may have, so that a page with many charts stays small."""
    rows = [row for one in charts for row in one.table.rows]
    most = max((len(chart.table.rows) for chart in charts), default=0)
    text = sum(len(cell) for row in rows for cell in row)
    if text <= TABLE_TEXT:
        return most
    return max(_FEWEST_ROWS, TABLE_TEXT * len(rows) // text // len(charts))
