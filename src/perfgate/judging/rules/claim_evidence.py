"""Claim evidence: what the starts of both sides of a claim say of the loss, before any decision.

Pure. All on the log scale of `rules.scale`, where a positive loss means that the side which
the claim speaks of is worse than the other one. Formulas: `rules.claims`, statistics §10.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Literal, Protocol

from perfgate.core.metrics import Metric
from perfgate.core.verdict import counted, percent
from perfgate.judging.rules import scale
from perfgate.judging.rules.ab import AbNoise, AbRule, look
from perfgate.judging.rules.noise import CLIP, median, sum_of_squares, t_quantile

# Both errors, a false PASS and a false REGRESSION, at every look (statistics §10).
CLAIM_RULE = AbRule(alpha=0.002, beta=0.002, first_look=3)


@dataclass(frozen=True)
class EarlierStarts:
    """That one side is an accepted baseline: its starts were made in other sessions.

    Attributes:
        side: which side.
        sessions: how many sessions its starts are of.
    """

    side: Literal["new", "other"]
    sessions: int


@dataclass(frozen=True)
class Loss:
    """What the numbers say of the loss: its estimate and bounds, and how one is written.

    Of a speed also after how many pairs, and where the other side lies on the scale.
    """

    estimate: float
    low: float
    high: float
    told: Callable[[float], str]
    runs: int = 0
    other: float = 0.0


class Evidence(Protocol):
    """The starts of a claim about a speed."""

    @property
    def rule(self) -> AbRule:
        """The constants."""

    @property
    def looks(self) -> int:
        """How many looks can be taken: pairs, or starts of the only side measured now."""

    @property
    def lacks(self) -> str:
        """Why nothing can be decided, however many starts follow; empty: it can."""

    def look(self, number: int) -> Loss:
        """What the first so many of them say."""

    def counted(self, number: int) -> str:
        """So many looks' starts in words."""


@dataclass(frozen=True)
class PairsOrNumber:
    """Pairs of starts with the spread of the other side, as in an A/B; or one side and a number.

    Attributes:
        new: losses of the side that the claim speaks of.
        other: those of the other one.
        claimed: the number instead of `other`.
    """

    metric: Metric
    new: tuple[float, ...]
    other: tuple[float, ...]
    claimed: float | None
    noise: AbNoise
    rule: AbRule

    lacks = ""

    @property
    def looks(self) -> int:
        made = len(self.new) if self.claimed is not None else min(len(self.new), len(self.other))
        return min(made, self.rule.pairs)

    def look(self, number: int) -> Loss:
        new, other = self.new[:number], self.other[:number]
        if self.claimed is None:
            seen = look(other, new, 0.0, self.noise, self.rule)
            return _loss(self.metric, number, fmean(seen.a), seen.loss, seen.low, seen.high)
        kept = self.noise.kept(new) if number >= self.rule.fewest else new
        loss, dof = fmean(kept) - self.claimed, self.rule.prior_dof + number - 1
        squares = self.rule.prior_dof * self.noise.sigma**2
        squares += sum((x - fmean(kept)) ** 2 for x in kept)
        reach = t_quantile(1 - self.rule.alpha, dof) * sqrt(squares / dof / number)
        return _loss(self.metric, number, self.claimed, loss, loss - reach, loss + reach)

    def counted(self, number: int) -> str:
        if self.claimed is not None:
            return counted(number, "fresh start")
        return counted(number, "pair") + " of starts"


@dataclass(frozen=True)
class BothSpreads:
    """Two sides, each with the spread that its own starts show; one may be a baseline.

    Two engines, or a setting that turns noisy, may differ in how far their starts vary, so each
    side's error is its own. A baseline's starts were made in other sessions, so what a session has
    in common counts as well.

    Attributes:
        new: losses of the side that the claim speaks of.
        other: those of the other one.
        earlier: which of them is a baseline's; None: both were measured in this session.
    """

    metric: Metric
    new: tuple[float, ...]
    other: tuple[float, ...]
    noise: AbNoise
    rule: AbRule
    earlier: EarlierStarts | None = None

    @property
    def looks(self) -> int:
        if self.earlier is None:
            return min(len(self.new), len(self.other), self.rule.pairs)
        now = self.other if self.earlier.side == "new" else self.new
        return min(len(now), self.rule.pairs)

    @property
    def lacks(self) -> str:
        if self.earlier is None:
            return ""
        stored = self.new if self.earlier.side == "new" else self.other
        if len(stored) >= self.rule.fewest:
            return ""
        made = counted(len(stored), "fresh start")
        return f"the baseline has {made}, at least {self.rule.fewest} a side decide"

    def look(self, number: int) -> Loss:
        whole = self.earlier.side if self.earlier else None
        new = self.new if whole == "new" else self.new[:number]
        other = self.other if whole == "other" else self.other[:number]
        error = 0.0
        means = []
        for values in (new, other):
            kept = self._kept(values)
            means.append(fmean(kept))
            error += self._variance(kept) / len(kept)
        if self.earlier is not None:
            shared = self.noise.between * self.noise.sigma**2
            error += shared * (1 + 1 / self.earlier.sessions)
        dof = self.rule.prior_dof + min(len(new), len(other)) - 1
        reach = t_quantile(1 - self.rule.alpha, dof) * sqrt(error)
        loss = means[0] - means[1]
        return _loss(self.metric, number, means[1], loss, loss - reach, loss + reach)

    def _kept(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """The values with outliers pulled in, though not to less than most of them show."""
        if len(values) < self.rule.fewest:
            return values
        if self.noise.measured:
            return self.noise.kept(values)
        centre = median(values)
        spread = 1.4826 * median([abs(x - centre) for x in values])
        reach = CLIP * max(self.noise.sigma, spread)
        return tuple(min(max(x, centre - reach), centre + reach) for x in values)

    def _variance(self, values: Sequence[float]) -> float:
        """The variance of one start of a side: pooled with the prior, and no less than its own."""
        squares, dof = sum_of_squares(values), len(values) - 1
        prior = self.rule.prior_dof
        pooled = (prior * self.noise.within**2 + squares) / (prior + dof)
        return max(pooled, squares / dof) if dof else pooled

    def counted(self, number: int) -> str:
        if self.earlier is None:
            return counted(number, "pair") + " of starts"
        stored = self.new if self.earlier.side == "new" else self.other
        made = counted(number, "fresh start")
        return f"{made} against {len(stored)} of the baseline"


def _loss(
    metric: Metric, runs: int, other: float, estimate: float, low: float, high: float
) -> Loss:
    def told(x: float) -> str:
        return percent(scale.change(metric, x))

    return Loss(estimate, low, high, told, runs, other)
