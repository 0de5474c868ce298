"""Anchor: how much may be lost since the last release, in however many steps."""

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.judging.rules import scale

# A build is allowed one band against the nearest baseline. Against the anchor, one and a half: the
# loss of a build that is within its band and yet not its first, but not two such steps.
ANCHOR_MARGIN = 1.5

# A band is a fraction below 1; half as much again may not be (latency, from a band of 59 % on).
_WIDEST = 0.999


def anchor_band(metric: str, band: float) -> float:
    """The band that counts against the anchor: 1.5 margins on the log scale.

    Of an accuracy it is 1.5 times the band, which is absolute.

    Args:
        metric: canonical name.
        band: the loss that counts against the nearest baseline, as a fraction.

    Returns:
        a fraction, at least `band` and below 1: very wide bands of latencies get less than 1.5.

    Raises:
        InputError: an unknown metric, or a band that is no fraction.
    """
    found = lookup(metric)
    if not is_accuracy(metric):
        wide = scale.band(found, ANCHOR_MARGIN * scale.margin(found, band))
    elif 0 < scale.as_number(band) < 1:
        wide = ANCHOR_MARGIN * band
    else:
        raise InputError(
            f"the band of {metric} cannot be used",
            found=band,
            expected="an absolute fraction between 0 and 1, e.g. 0.02 for two points",
        )
    return max(band, min(wide, _WIDEST))
