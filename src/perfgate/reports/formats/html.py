"""The report as one HTML file for people, which needs no network and shows all without scripts."""

from perfgate.reports.charts import bundle, charts_of
from perfgate.reports.formats.base import ReportFormat, report_format, shown
from perfgate.reports.page import page_of
from perfgate.reports.run_report import RunReport


@report_format("html")
class HtmlFormat(ReportFormat):
    """The page (docs/how-to/read_a_report.md)."""

    file = "report.html"

    def text(self, report: RunReport) -> str:
        """The page's text, UTF-8 by its own word."""
        histories = [shown(history) for history in self.histories]
        return page_of(report, charts_of(report, histories), bundle)
