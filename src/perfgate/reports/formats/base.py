"""Formats: one class each, which makes a text of a run's report and does nothing else."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from perfgate.core.registry import Registry
from perfgate.reports.history import MetricHistory
from perfgate.reports.run_report import RunReport
from perfgate.reports.shown import shown


@dataclass(frozen=True)
class ReportContext:
    """What a report shows beside the run.

    Attributes:
        histories: of the gating metrics; none where nothing is stored.
    """

    histories: tuple[MetricHistory, ...] = ()


class ReportFormat(ABC):
    """A format.

    Attributes:
        file: name of its file in a folder of reports.
    """

    file: ClassVar[str]

    def render(self, report: RunReport, context: ReportContext) -> str:
        """The report as text. What it shows is hostile: logs, names, texts of YAML."""
        return self.text(shown(report), shown(context))

    @abstractmethod
    def text(self, report: RunReport, context: ReportContext) -> str:
        """The text of a report in which `shown` has masked every text."""


report_format: Registry[ReportFormat] = Registry("format", "perfgate.reports.formats")
