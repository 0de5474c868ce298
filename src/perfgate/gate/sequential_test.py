"""Sequential test: the rule itself, on the log scale of `perfgate.gate.scale`.

Every further fresh start of the new build is one more look at its runs. The rule, its error rates
and the reasons for its order: docs/reference/verdicts.md, "The rule for performance".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.core.metrics import Metric
from perfgate.gate import scale
from perfgate.gate.noise import (
    Noise,
    median,
    smallest_detectable,
    standard_error,
    t_quantile,
    t_tail,
)
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import (
    Against,
    Judgement,
    Verdict,
    counted,
    percent,
    with_interval,
)

# A run so many sigma from the others is told. By chance alone 5 in 1,000 pairs differ by as much.
_FAR_SIGMAS = 4


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
        environment_sigma: spread between environments that no further run averages out.
    """

    metric: Metric
    centre: float
    n_base: float
    noise: Noise
    rule: Rule
    against: str
    kind: Against = "baseline"
    environment_sigma: float = 0.0

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
            environment_sigma=self.environment_sigma,
        )

    def standard_error(self, runs: int) -> float:
        """That of the mean loss of so many new runs."""
        return standard_error(
            self.noise, self.n_base, runs, environment_sigma=self.environment_sigma
        )

    def interval(self, look: Look) -> tuple[float, float]:
        """The look's bounds as changes of the value, low first."""
        low, high = sorted(scale.change(self.metric, bound) for bound in (look.low, look.high))
        return low, high


def judge(
    comparison: BaselineLevel, new: Sequence[float], margin: float, notes: Sequence[str] = ()
) -> Judgement:
    """Look after each new run, in order, and stop at the first look that decides.

    Runs after that look, or beyond `rule.max_runs`, are not used.
    """
    runs = list(new[: comparison.rule.max_runs])
    verdict, look = _decide(comparison, runs, margin)
    remarks = list(notes)
    if verdict == Verdict.PASS and look.low > 0:
        remarks.append("small loss within the band")
    if verdict == Verdict.PASS and look.improved(margin):
        second = comparison.look(runs[1:2]) if len(runs) > 1 else None
        if second is None:
            remarks.append("improved; a second fresh start would have to agree")
        elif look.runs == 1 and second.improved(margin):
            verdict, look = Verdict.IMPROVEMENT, comparison.look(runs[:2])
        else:
            remarks.append("improved, but not in each of the first two fresh starts")
    metric = comparison.metric
    remarks += _far_runs(comparison, runs[: look.runs])
    return Judgement(
        metric=metric.name,
        verdict=verdict,
        baseline=scale.value(metric, comparison.centre),
        measured=scale.value(metric, fmean(runs[: look.runs])),
        change=scale.change(metric, look.loss),
        interval=comparison.interval(look),
        band=scale.band(metric, margin),
        runs_used=look.runs,
        needs_more_runs=verdict == Verdict.INCONCLUSIVE and look.runs < comparison.rule.max_runs,
        reason=_reason(verdict, comparison, look, margin),
        notes=tuple(remarks),
        against=comparison.kind,
    )


def _decide(
    comparison: BaselineLevel, runs: Sequence[float], margin: float
) -> tuple[Verdict, Look]:
    count = 1
    while True:
        look = comparison.look(runs[:count])
        if look.high < margin:
            return Verdict.PASS, look
        # The first run raised the suspicion, so only later ones can confirm it.
        if look.low > 0 and count >= 2 and comparison.look(runs[1:count]).low > 0:
            return Verdict.REGRESSION, look
        if count == len(runs):
            return Verdict.INCONCLUSIVE, look
        count += 1


def _far_runs(comparison: BaselineLevel, runs: Sequence[float]) -> list[str]:
    """Notes of runs that lie far from the others; they are told and never dropped.

    A run is far if it lies beyond 4 sigma from the median of the others, and of all as well: of
    three runs the two that agree have a median of the others half-way to the third.
    """
    reach = _FAR_SIGMAS * comparison.noise.sigma
    widest = max(runs) - min(runs)
    if widest <= reach:
        return []
    middle, told = median(runs), []
    for position, run in enumerate(runs):
        others = median([*runs[:position], *runs[position + 1 :]])
        if abs(run - middle) > reach and abs(run - others) > reach:
            told.append(
                f"fresh start {position + 1} lies {_away(comparison, run - others)} from the "
                f"median of the other {len(runs) - 1}; it is used like them"
            )
    if len(runs) == 2:
        apart = _away(comparison, runs[1] - runs[0])
        return [f"fresh start 2 lies {apart} from fresh start 1; both are used"]
    if 2 * len(told) >= len(runs):  # no run is the odd one out
        apart = _away(comparison, widest).lstrip("+-")
        return [f"the {len(runs)} fresh starts lie up to {apart} apart; all are used"]
    return told


def _away(comparison: BaselineLevel, distance: float) -> str:
    change = scale.change(comparison.metric, distance)
    return f"{percent(change)} ({abs(distance) / comparison.noise.sigma:.1f} sigma)"


def _reason(verdict: Verdict, comparison: BaselineLevel, look: Look, margin: float) -> str:
    """One sentence: how far it moved, where the true change lies, and what follows from that."""
    metric = comparison.metric
    bounds = sorted(scale.change(metric, x) for x in (look.low, look.high))
    (low, high, band), digits = _told_apart([*bounds, scale.change(metric, margin)])
    seen = with_interval(percent(scale.change(metric, look.loss), digits), low, high)
    after = f"{counted(look.runs, 'fresh start')} against {comparison.against}"
    if verdict == Verdict.IMPROVEMENT:
        gain = percent(scale.change(metric, -margin / 2), digits)
        return (
            f"{seen}, beyond the {gain} that counts as a gain; "
            f"each of the first two starts agrees; {after}"
        )
    if verdict == Verdict.PASS:
        return f"{seen}, within the {band} band; {after}"
    if verdict == Verdict.REGRESSION:
        size = "beyond" if look.loss >= margin else "a real loss that may reach"
        return f"{seen}, {size} the {band} band; confirmed by the later starts alone; {after}"
    proof = "a loss is likely but not confirmed" if look.low > 0 else "no loss is proved"
    left = comparison.rule.max_runs - look.runs
    ahead = f"up to {left} more may decide" if left else "no more are allowed"
    return f"{seen}: {proof}, and the {band} band is not excluded; {after}, {ahead}"


def _told_apart(shares: Sequence[float]) -> tuple[list[str], int]:
    """Shares as percentages, with as many digits as tell the last one, the band, from the rest."""
    for digits in (1, 2, 3):
        texts = [percent(share, digits) for share in shares]
        if texts[-1] not in texts[:-1]:
            break
    return texts, digits
