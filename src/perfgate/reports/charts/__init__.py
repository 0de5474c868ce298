"""Charts: what a report draws, as Vega-Lite specs with their tables of data. Pure but for SVG."""

from perfgate.reports.charts.chart import Chart, ChartTable, bundle
from perfgate.reports.charts.chart_set import ChartSet, charts_of

__all__ = ["Chart", "ChartSet", "ChartTable", "bundle", "charts_of"]
