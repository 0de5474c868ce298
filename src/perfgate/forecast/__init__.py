"""Forecast: what a gate could show and would cost, before any GPU time is spent."""
