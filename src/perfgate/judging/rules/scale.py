"""The scale on which metrics are judged: how bad a value is, whatever its direction.

Performance: ``x = -ln(value)`` where larger values are better and ``x = +ln(value)`` where smaller
ones are, so that a positive difference is always a loss and noise in per cent is the same at every
level (docs/explanation/detection.md). Accuracy: the share itself, a positive difference being a
drop. Differences and margins on this scale have no unit.
"""

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric, is_accuracy, lookup
from perfgate.core.verdict import Judgement, Verdict, percent, points
from perfgate.judging.rules.reasons import with_interval

# Two values of one metric that differ by this factor are not in one unit. The usual mix-ups (ms
# and s, µs and ms, tokens/s and thousands of them) are a factor of 1,000, and stay above 200 even
# if the build itself changed fivefold meanwhile. Real values stay below it: in 13 public series of
# 11,040 values (Mozilla, MongoDB, Otava) the largest is at most 42 times the smallest, and a server
# that begins to queue may show a TTFT a hundred times as long. What is refused is never a PASS, so
# no loss hides behind it.
UNIT_FACTOR = 200
_UNIT_GAP = math.log(UNIT_FACTOR)

# A build is allowed one band against the nearest baseline. Against the anchor, one and a half: the
# loss of a build that is within its band and yet not its first, but not two such steps.
ANCHOR_MARGIN = 1.5

# A band is a fraction below 1; half as much again may not be (latency, from a band of 59 % on).
_WIDEST = 0.999

# exp(x) overflows from 709.8 on; no real change comes near.
_LARGEST_EXPONENT = 709.0


def log_loss(metric: Metric, values: Sequence[float], what: str) -> tuple[float, ...]:
    """The values on the scale; `what` names them in errors ("baseline", "new").

    Arrays of one dimension and whole numbers are as good as lists of floats.

    Raises:
        InputError: no values, or one that is not a finite, positive number (a bool is none), or a
            share above 1.
    """
    if len(values) == 0:  # also of an array, which has no truth value
        raise InputError(f"no {what} values of {metric.name}", expected="at least one")
    largest = 1.0 if metric.unit == "fraction" else math.inf
    sign, log = _sign(metric), math.log
    found = []
    for position, value in enumerate(values, start=1):
        number = value if type(value) is float else as_number(value)
        if not (0 < number < math.inf and number <= largest):
            raise _not_judged(metric, value, f"{what} value {position}")
        found.append(sign * log(number))
    return tuple(found)


def has_zero(metric: Metric, *series: Sequence[float] | Sequence[Sequence[float]]) -> str:
    """Why values cannot be compared relatively: one of a metric that may be zero is; else empty.

    What is no list of numbers, or of such lists, is left to others to refuse.

    From 0 every change is infinitely large, and to 0 every one is a whole gain, so no band can
    tell a loss from noise.
    """
    if not metric.may_be_zero or not _holds_zero(series):
        return ""
    return (
        f"a value of {metric.name} is 0 {metric.unit}, so it cannot be compared relatively; gate "
        "its mean, or another metric that has no 0"
    )


def _holds_zero(value: object) -> bool:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return any(map(_holds_zero, value))
    return as_number(value) == 0


def _not_judged(metric: Metric, value: object, place: str) -> InputError:
    if metric.unit == "fraction" and as_number(value) > 1:
        expected, hint = "a share above 0 and up to 1", "give a share, not a percentage"
    else:
        expected = f"a finite number of {metric.unit} above 0"
        hint = "a run that gave such a value has failed and must not be judged"
    return InputError(
        f"{place} of {metric.name} cannot be judged",
        # Not the text of a whole number, which may be longer than Python prints.
        found=repr(value) if math.isnan(as_number(value)) else as_number(value),
        expected=expected,
        hint=hint,
    )


def as_number(value: object) -> float:
    """`value` as a float; NaN for whatever is no real number: bools, texts, lists, None."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return math.inf


def check_unit(metric: Metric, baseline: Sequence[float], new: Sequence[float]) -> None:
    """Refuse values, on the scale, that cannot be in one unit: `UNIT_FACTOR` or more apart.

    That is: baseline values so far from each other, new runs that are all so much worse than every
    baseline value, or a single one that is so much better. One run that is so much worse among
    others is left to the rule: a start can go wrong, but none gets 200 times better by accident.

    Raises:
        InputError: as said.
    """
    best, worst, ours = min(baseline), max(baseline), min(new)
    for gap, what in (
        (worst - best, "baseline values differ among themselves"),
        (best - ours, "a new value is better than every baseline value"),
        (ours - worst, "new values are worse than every baseline value"),
    ):
        if gap >= _UNIT_GAP:
            known = sorted(value(metric, x) for x in (best, worst))
            raise InputError(
                f"the values of {metric.name} are hardly all in {metric.unit}: {what}, by a "
                f"factor of {math.exp(min(gap, _LARGEST_EXPONENT)):.4g}",
                found=f"baseline {known[0]:.6g} … {known[1]:.6g}, new {value(metric, ours):.6g}",
                expected=f"values in {metric.unit}, less than a factor of {UNIT_FACTOR} apart",
                hint="look for ms against s, or tokens/s against thousands of them; if the unit is "
                "right, a run has failed and must not be judged",
            )


def value(metric: Metric, x: float) -> float:
    """The value of a speed, in the metric's unit, that lies at `x` on the scale."""
    return math.exp(min(_sign(metric) * x, _LARGEST_EXPONENT))


def change(metric: Metric, difference: float) -> float:
    """The change of the value itself that a difference stands for: relative, of an accuracy not."""
    if is_accuracy(metric.name):
        return -difference
    return math.expm1(min(_sign(metric) * difference, _LARGEST_EXPONENT))


def loss(metric: Metric, change: float) -> float:
    """The inverse of `change`: a change of the value on the scale, negative where it is a gain."""
    return -change if is_accuracy(metric.name) else _sign(metric) * math.log1p(change)


def describe(metric: Metric, difference: float, digits: int = 1) -> str:
    """That change as text: ``-1.5 %``, of an accuracy ``-1.5 points``."""
    changed = change(metric, difference)
    accuracy = is_accuracy(metric.name)
    return f"{points(changed)} points" if accuracy else percent(changed, digits)


class Estimate(NamedTuple):
    """A mean loss, and the bounds L and U of the true one, on the scale; positive is worse."""

    loss: float
    low: float
    high: float

    def interval(self, metric: Metric) -> tuple[float, float]:
        """The bounds as changes of the value, the lower first."""
        first, last = sorted((change(metric, self.low), change(metric, self.high)))
        return first, last

    def describe(self, metric: Metric, digits: int = 1) -> str:
        """``-1.5 % (interval -2.1…-0.9 %)``."""
        ends = sorted((self.low, self.high), key=lambda one: change(metric, one))
        return with_interval(*(describe(metric, one, digits) for one in (self.loss, *ends)))


def judgement(
    metric: Metric,
    verdict: Verdict,
    seen: Estimate,
    margin: float,
    values: tuple[float, float],
    reason: str,
    **fields: Any,
) -> Judgement:
    """The judgement of a loss: `values` of baseline and new build; `fields` are the other fields.

    `margin` is the band on the scale.
    """
    return Judgement(
        metric.name,
        verdict,
        *values,
        change(metric, seen.loss),
        seen.interval(metric),
        band(metric, margin),
        reason=reason,
        **fields,
    )


def margin(metric: Metric, band: float) -> float:
    """A band on the scale: -ln(1 - band) where larger is better, else ln(1 + band).

    Of an accuracy it is the band itself.

    Raises:
        InputError: the band is not a fraction between 0 and 1.
    """
    accuracy = is_accuracy(metric.name)
    if not 0 < as_number(band) < 1:
        share = "a fraction between 0 and 1, e.g. 0.02 for a loss of 2 %"
        absolute = "an absolute fraction between 0 and 1, e.g. 0.02 for two points"
        expected = absolute if accuracy else share
        raise InputError(f"the band of {metric.name} cannot be used", found=band, expected=expected)
    return loss(metric, _sign(metric) * band)


def band(metric: Metric, margin: float) -> float:
    """The inverse of `margin`: the loss, as a fraction of the value; of an accuracy absolute."""
    return abs(change(metric, margin))


def anchor_band(metric: str, declared: float) -> float:
    """The band that counts against the anchor: 1.5 margins on the scale.

    Args:
        metric: canonical name.
        declared: the loss that counts against the nearest baseline, as a fraction.

    Returns:
        a fraction, at least `declared` and below 1: very wide bands of latencies get less than 1.5.

    Raises:
        InputError: an unknown metric, or a band that is no fraction.
    """
    known = lookup(metric)
    wide = band(known, ANCHOR_MARGIN * margin(known, declared))
    return max(declared, min(wide, _WIDEST))


def performance_metric(name: str) -> Metric:
    """The performance metric of that name.

    Raises:
        InputError: no metric has it, or it is an accuracy.
    """
    if is_accuracy(name):
        hint = "use perfgate.judging.rules.accuracy"
        raise InputError("an accuracy is not judged as performance", found=name, hint=hint)
    return lookup(name)


def declared_band(metric: Metric, band: float | None) -> float:
    """The band, or if none is given that of the metric's family.

    Raises:
        InputError: it has none either.
    """
    declared = metric.family.band if band is None else band
    if declared is None:
        raise InputError(
            f"{metric.name} is only reported: it has no default band and cannot gate without one",
            hint=f"give {metric.name} a band in gate.bands, or take it out of gate.metrics",
        )
    return declared


def _sign(metric: Metric) -> int:
    return -1 if metric.direction == "higher" else 1
