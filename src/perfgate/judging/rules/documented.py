"""Documented: new starts against a speed that a document reports, a number without any spread.

What differs between the document's machine and this one is covered by the tolerance, not by an
error term, and no loss below the tolerance is claimed (statistics §7). No control is ever asked
for: the document's build is not at hand. Documented scores are `perfgate.judging.rules.accuracy`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfgate.core.metrics import Metric
from perfgate.core.verdict import Judgement, Rule, Verdict, counted, percent
from perfgate.judging.rules import scale
from perfgate.judging.rules.constants import NormalRule
from perfgate.judging.rules.noise import checked_sigma
from perfgate.judging.rules.reasons import may_decide

if TYPE_CHECKING:
    from perfgate.judging.rules.sequential import Floats, Verdicts

# What two machines of one kind may differ by: a smaller loss is not claimed.
LEAST_TOLERANCE = 0.10
# Error rates of 2.5 % and 0.5 %: the noise of one start is stipulated, not estimated.
RULE = NormalRule(pass_z=1.96, loss_z=2.58)
MOST_STARTS = RULE.most


@dataclass(frozen=True)
class DocumentedTest:
    """A performance metric against a documented value.

    Attributes:
        metric: canonical name.
        band: the document's tolerance, as a fraction; less than 0.10 is raised to that.
        value: the documented one, in the metric's unit.
        new: values of the new build, one per fresh start, in the order measured.
        sigma: noise of one start on the log scale; None: that of the metric's family.
    """

    metric: str
    band: float
    value: float
    new: Sequence[float]
    sigma: float | None = None

    def judge(self, rule: Rule) -> Judgement:
        """Judge new starts against a documented value.

        With m the mean loss against the document on the log scale (of three starts their median),
        SE = sigma sqrt(1/n + 1) and delta the band: m + 1.96 SE < delta is PASS; n >= 2 and
        m - 2.58 SE > delta is REGRESSION, "misses the document by more than" the band; else
        another start, three at most, then INCONCLUSIVE (statistics §7). There is no IMPROVEMENT.
        Keep these verdicts out of measured history.

        Raises:
            InputError: unknown metric, or values that cannot be judged or cannot be in one unit.
        """
        from perfgate.judging.rules.sequential import as_cases

        metric = scale.performance_metric(self.metric)
        margin = documented_margin(metric, self.band)
        prior = checked_sigma(metric.family.sigma if self.sigma is None else self.sigma)
        centre = scale.log_loss(metric, [self.value], "documented")[0]
        values = scale.log_loss(metric, self.new, "new")
        scale.check_unit(metric, [centre], values)
        most = min(rule.max_runs, MOST_STARTS)
        losses = as_cases([[value - centre for value in values[:most]]])
        verdict, runs = decide(losses, margin, prior).first()
        loss, error = float(typical_losses(losses)[0, runs - 1]), standard_error(prior, runs)
        seen = scale.Estimate(loss, loss - RULE.loss_z * error, loss + RULE.pass_z * error)
        left = most - runs if verdict == Verdict.INCONCLUSIVE else 0
        effect, band = seen.describe(metric), scale.describe(metric, margin)
        after = (
            f"{counted(runs, 'fresh start')} against the documented value of {self.value:.10g} "
            f"{metric.unit}"
        )
        reasons = {
            Verdict.REGRESSION: f"misses the document by more than {band.lstrip('+-')}: {effect}",
            Verdict.PASS: f"{effect}, no worse than the document by the {band} tolerance",
            Verdict.INCONCLUSIVE: f"{effect}: the {band} tolerance is not excluded, and that the "
            "document is missed by more is not proved",
        }
        ahead = f", {may_decide(left)}" if verdict == Verdict.INCONCLUSIVE else ""
        notes = ["against a documented number, perhaps of another machine"]
        if self.band < LEAST_TOLERANCE:
            notes.append(
                f"tolerance raised from {percent(self.band, sign='')} to "
                f"{percent(LEAST_TOLERANCE, 0, sign='')}: less cannot be told from the difference "
                "between machines"
            )
        return scale.judgement(
            metric,
            verdict,
            seen,
            margin,
            (self.value, scale.value(metric, centre + loss)),
            f"{reasons[verdict]}; {after}{ahead}",
            runs_used=runs,
            needs_more_runs=left > 0,
            notes=tuple(notes),
            against="documented",
        )


def documented_margin(metric: Metric, tolerance: float) -> float:
    """The tolerance on the log scale; less than 10 % is raised to that.

    Raises:
        InputError: a tolerance that is no fraction.
    """
    return max(scale.margin(metric, tolerance), scale.margin(metric, LEAST_TOLERANCE))


def decide(losses: "Floats", margin: float, sigma: float) -> "Verdicts":
    """The rule for many cases at once.

    Args:
        losses: against the document on the log scale, in order; shape (cases, 1 to 3 starts).
        margin: the tolerance on that scale.
        sigma: noise of one start on that scale.
    """
    from perfgate.judging.rules.sequential import stipulated

    errors = [standard_error(sigma, runs) for runs in range(1, losses.shape[1] + 1)]
    return stipulated(typical_losses(losses), errors, margin, RULE, least=margin)


def typical_losses(losses: "Floats") -> "Floats":
    """The mean of the first starts; of three their median, which one outlier does not move far."""
    from perfgate.judging.rules.sequential import middle, running_means

    typical = running_means(losses)
    if losses.shape[1] == MOST_STARTS:
        typical[:, -1] = middle(losses)
    return typical


def standard_error(sigma: float, runs: int) -> float:
    """SE of so many starts against a document, which is worth one: sigma sqrt(1/n + 1)."""
    return sigma * math.sqrt(1 / runs + 1)
