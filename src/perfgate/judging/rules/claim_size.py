"""Claim size: the change that a document gives, and how much of it may be missing. Pure.

The tolerance is ours: a document gives one number of one machine, without a spread. It is a loss of
the value against what the document's ratio of both sides makes of the other one. With +7.6 %
documented and a tolerance of 5 %, the limit is 1.076 · 0.95 - 1 = +2.2 %.
"""

from dataclasses import dataclass
from math import isfinite, log1p

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric
from perfgate.core.verdict import percent
from perfgate.judging.rules import scale


@dataclass(frozen=True)
class DocumentedSize:
    """A documented change on the scale of losses.

    Attributes:
        metric: what changes.
        documented: the change of the value against the other's, as a fraction: 0.076 is +7.6 %.
        tolerance: the loss against it that is still the documented size, as a fraction; 0: none is
            judged, the size is only told.
    """

    metric: Metric
    documented: float
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.documented) and self.documented > -1 and self.documented != 0):
            raise InputError(
                f"the documented change of {self.metric.name} cannot be used",
                found=self.documented,
                expected="a fraction above -1 that is not 0, e.g. 0.076 for +7.6 %",
            )
        if not (isfinite(self.tolerance) and 0 <= self.tolerance < 1):
            raise InputError(
                f"the tolerance of a claim about {self.metric.name} cannot be used",
                found=self.tolerance,
                expected="a fraction from 0 to below 1, e.g. 0.05 for 5 %",
            )

    @property
    def loss(self) -> float:
        """The documented change as a loss: negative where it is a gain."""
        x = log1p(self.documented)
        return -x if self.metric.direction == "higher" else x

    @property
    def edge(self) -> float:
        """The largest loss that is still the documented size."""
        return self.loss + scale.margin(self.metric, self.tolerance)

    @property
    def beyond(self) -> float:
        """From here on the change is better than documented by more than the tolerance."""
        return self.loss - scale.margin(self.metric, self.tolerance)

    @property
    def in_words(self) -> str:
        """``documented +7.6 %, limit +2.2 % with our tolerance of 5 %``."""
        told = f"documented {percent(self.documented)}"
        tolerance = f"our tolerance of {100 * self.tolerance:g} %"
        if self.loss < 0 <= self.edge:
            return f"{told}, less than {tolerance}: the direction decides"
        return f"{told}, limit {percent(scale.change(self.metric, self.edge))} with {tolerance}"
