"""Forecast: what a run can be expected to find, and how many fresh starts that takes."""
