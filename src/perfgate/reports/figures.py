"""Figures: the numbers of one metric as texts, and how large a loss is. Pure.

A record of a newer perfgate may name a metric that the table of metrics lacks. Its numbers are
shown; its unit, its direction, and so its band, are not known.
"""

import math

from perfgate.core.errors import InputError
from perfgate.core.measurement import Change
from perfgate.core.metrics import Metric, is_accuracy, lookup
from perfgate.core.verdict import Judgement


def known(metric: str) -> Metric | None:
    """What the metric is; None: the table of metrics lacks it."""
    try:
        return lookup(metric)
    except InputError:
        return None


def unit_of(metric: str) -> str:
    """The unit of a metric; empty: not known."""
    found = known(metric)
    return "" if found is None else found.unit


def with_unit(metric: str) -> str:
    """``output_throughput [tokens/s]``."""
    unit = unit_of(metric)
    return f"{metric} [{unit}]" if unit else metric


def bad_sign(metric: str) -> int:
    """The sign of a change to the worse; 0: not known."""
    found = known(metric)
    return 0 if found is None else -1 if found.direction == "higher" else 1


def number(value: float | None) -> str:
    """A value with four significant digits, thousands never in scientific notation."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 9999.5 else f"{value:.4g}"


def signed(metric: str, value: float | None) -> str:
    """A change as a signed percentage; of an accuracy as points."""
    return "-" if value is None else f"{_points(value)} {_percent_or_points(metric)}"


def interval(one: Judgement | Change) -> str:
    """The interval of the change, in the change's unit."""
    if one.interval is None:
        return "-"
    low, high = one.interval
    return f"{_points(low)} … {signed(one.metric, high)}"


def band(one: Judgement | Change) -> str:
    """How far the metric may move in its bad direction, ``-2.0 %``; ``-``: not known."""
    sign = bad_sign(one.metric)
    if isinstance(one, Change) or one.band is None or not sign:
        return "-"
    return f"{'-' if sign < 0 else '+'}{100 * one.band:.1f} {_percent_or_points(one.metric)}"


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # never -0.0


def _percent_or_points(metric: str) -> str:
    return "points" if is_accuracy(metric) else "%"


def loss(one: Judgement | Change) -> float | None:
    """How far it moved in its bad direction, as a fraction; below 0: it got better.

    None: it has no change, or its bad direction is not known.
    """
    sign = bad_sign(one.metric)
    return None if one.change is None or not sign else sign * one.change


def loss_in_bands(one: Judgement) -> float | None:
    """The loss in bands, as `in_bands`."""
    return in_bands(one, one.change)


def in_bands(one: Judgement, change: float | None) -> float | None:
    """A change of the metric as a loss in bands; below 0: it got better; None: not known.

    Any loss is infinite in bands of zero, and so is any gain, below 0.
    """
    sign = bad_sign(one.metric)
    if change is None or one.band is None or not sign:
        return None
    if one.band == 0:
        return math.copysign(math.inf, sign * change) if change else 0.0
    return sign * change / one.band


def worst_first(one: Judgement | None) -> tuple[bool, float]:
    """What judgements are sorted by: the largest loss in bands first, one not known last."""
    bands = None if one is None else loss_in_bands(one)
    return bands is None, -(bands or 0.0)


def best_first(one: Judgement | None) -> tuple[bool, float]:
    """What improvements are sorted by: the largest gain in bands first, one not known last."""
    unknown, gain = worst_first(one)
    return unknown, -gain
