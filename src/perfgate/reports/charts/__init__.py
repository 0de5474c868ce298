"""Charts: what a report draws, as Vega-Lite specs with their tables of data. Pure but for SVG."""

from perfgate.reports.charts.chart import Chart, ChartTable
from perfgate.reports.charts.chart_set import ChartSet, charts_of
from perfgate.reports.charts.drawing import bundle

__all__ = ["Chart", "ChartSet", "ChartTable", "bundle", "charts_of"]
