"""Baseline level: what new runs are compared with, on the log scale of `rules.scale`."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.core.metrics import Metric
from perfgate.core.rule import Rule
from perfgate.core.verdict import Against
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import (
    Noise,
    control_error,
    smallest_detectable,
    standard_error,
    t_quantile,
    t_tail,
)


@dataclass(frozen=True)
class Look:
    """What so many new runs say: their mean loss with its bounds; positive is worse.

    The true loss is below `low` with probability alpha at most, above `high` with beta.
    """

    runs: int
    loss: float
    low: float
    high: float

    def improved(self, margin: float) -> bool:
        """Whether the gain is real and at least half of what would count as a loss."""
        return self.high < 0 and -self.loss >= margin / 2


@dataclass(frozen=True)
class BaselineLevel:
    """What new runs are compared with.

    Attributes:
        metric: what is compared.
        centre: mean of the baseline on the log scale.
        n_base: values behind it; infinite for a number that is taken as exact.
        noise: noise of one run.
        rule: error rates and effort.
        against: the baseline in words, for reasons.
        kind: what the baseline is.
        sessions: sessions behind it: of one session, all starts share its luck.
    """

    metric: Metric
    centre: float
    n_base: float
    noise: Noise
    rule: Rule
    against: str
    kind: Against = "baseline"
    sessions: float = 1

    def look(self, new: Sequence[float]) -> Look:
        """d = mean(new) - centre, L = d - t(1-alpha) SE, U = d + t(1-beta) SE."""
        loss, error = fmean(new) - self.centre, self.standard_error(len(new))
        low = loss - t_quantile(1 - self.rule.alpha, self.noise.dof) * error
        high = loss + t_quantile(1 - self.rule.beta, self.noise.dof) * error
        return Look(len(new), loss, low, high)

    def p_value(self, look: Look) -> float:
        """P of a loss at least this large if there is none."""
        return t_tail(look.loss / self.standard_error(look.runs), self.noise.dof)

    def smallest_detectable(self, runs: int) -> float:
        """The smallest true loss that so many new runs find in 19 of 20 cases, on the log scale."""
        return smallest_detectable(
            self.noise,
            self.n_base,
            runs,
            alpha=self.rule.alpha,
            sessions=self.sessions,
        )

    def standard_error(self, runs: int) -> float:
        """That of the mean loss of so many new runs."""
        return standard_error(
            self.noise,
            self.n_base,
            runs,
            sessions=self.sessions,
        )

    def control_error(self, runs: int, controls: int) -> float:
        """That of the mean of so many new runs against so many controls of the same session.

        SEc = s √((1-ρ) (1/m + 1/j)) (statistics §2).
        """
        return control_error(self.noise, runs, controls)

    def interval(self, look: Look) -> tuple[float, float]:
        """The look's bounds as changes of the value, low first."""
        low, high = sorted(scale.change(self.metric, bound) for bound in (look.low, look.high))
        return low, high
