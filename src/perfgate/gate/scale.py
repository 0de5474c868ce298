"""The scale on which performance is judged: the log of how bad a value is, whatever its direction.

``x = -ln(value)`` where larger values are better and ``x = +ln(value)`` where smaller ones are, so
that a positive difference is always a loss and noise in per cent is the same at every level
(docs/verdicts.md, "The rule for performance"). Differences and margins on this scale have no unit.
"""

import math
from collections.abc import Sequence

from perfgate.errors import InputError
from perfgate.metrics import Metric


def badness(metric: Metric, values: Sequence[float], what: str) -> tuple[float, ...]:
    """The values on the scale; `what` names them in errors ("baseline", "new").

    Raises:
        InputError: no values, or one that is not finite and positive.
    """
    if len(values) == 0:  # also for arrays
        raise InputError(f"no {what} values of {metric.name}", expected="at least one")
    for position, value in enumerate(values, start=1):
        if not (math.isfinite(value) and value > 0):
            raise InputError(
                f"{what} value {position} of {metric.name} cannot be judged",
                found=value,
                expected=f"a finite number of {metric.unit} above 0",
                hint="a run that gave such a value has failed and must not be judged",
            )
    sign = _sign(metric)
    return tuple(sign * math.log(value) for value in values)


def value(metric: Metric, x: float) -> float:
    """The value, in the metric's unit, that lies at `x` on the scale."""
    return math.exp(_sign(metric) * x)


def change(metric: Metric, difference: float) -> float:
    """The relative change of the value itself that a difference on the scale stands for."""
    return math.expm1(_sign(metric) * difference)


def margin(metric: Metric, band: float) -> float:
    """A band on the scale: -ln(1 - band) where larger is better, else ln(1 + band).

    Raises:
        InputError: the band is not a fraction between 0 and 1.
    """
    if not 0 < band < 1:
        raise InputError(
            f"the band of {metric.name} cannot be used",
            found=band,
            expected="a fraction between 0 and 1, e.g. 0.02 for a loss of 2 %",
        )
    return -math.log1p(-band) if metric.direction == "higher" else math.log1p(band)


def band(metric: Metric, margin: float) -> float:
    """The inverse of `margin`: the loss, as a fraction of the value."""
    return -math.expm1(-margin) if metric.direction == "higher" else math.expm1(margin)


def _sign(metric: Metric) -> int:
    return -1 if metric.direction == "higher" else 1
