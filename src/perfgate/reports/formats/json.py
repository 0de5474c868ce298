"""The report as JSON, for programs (docs/reference/run_report.schema.json)."""

from perfgate.reports.formats.base import ReportFormat, indented, report_format
from perfgate.reports.run_report import RunReport


@report_format("json")
class JsonFormat(ReportFormat):
    """One object: the report's plain form."""

    file = "report.json"

    def text(self, report: RunReport) -> str:
        """The text, ended by a line end."""
        return indented(report) + "\n"
