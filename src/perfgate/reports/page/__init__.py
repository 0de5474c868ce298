"""Page: a run's report as one HTML file. Modules turn the report into what the templates show."""

from perfgate.reports.page.page import page_of

__all__ = ["page_of"]
