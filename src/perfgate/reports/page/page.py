"""Page: the templates filled with a report. Everything in it is escaped but our own style, our own
script, the charts' bundle and the charts' static SVG.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from perfgate.gate.verdict import MEANINGS
from perfgate.reports.charts import Chart, ChartSet
from perfgate.reports.html_templates import environment
from perfgate.reports.outcome_text import number
from perfgate.reports.page.chart_data import PLAIN, packed, rows_of_each, specs_text
from perfgate.reports.page.first_screen import first_screen
from perfgate.reports.page.results_table import result_rows
from perfgate.reports.page.scenario_section import machine_rows, scenario_sections
from perfgate.reports.page.signs import SIGNS
from perfgate.reports.run_report import RunReport

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
        number=number,
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
