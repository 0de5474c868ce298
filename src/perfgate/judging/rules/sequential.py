"""Sequential rules for many cases at once: after each fresh start PASS, REGRESSION, or one more.

A verdict is a case of one; a forecast or a study is many. Values are losses (positive: worse), of
speeds on the log scale of `rules.scale`; arrays have the shape (cases, starts). The rules, their
constants and simulated error rates: statistics §2 and §7, docs/reference/verdicts.md. Nothing is
drawn here. This module loads numpy, so it is imported where judging begins and not before.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfgate.core.verdict import Rule, Verdict
from perfgate.judging.rules.constants import ControlRule, NormalRule
from perfgate.judging.rules.noise import BETWEEN, CLIP, FEWEST, MISSED, t_quantile
from perfgate.judging.rules.scale import Estimate

Floats = NDArray[Any]
Codes = NDArray[np.int8]
Booleans = NDArray[np.bool_]
Cases = NDArray[np.intp]
Looks = tuple[tuple[int, int], ...]

INCONCLUSIVE, PASS, HOST_SHIFT, REGRESSION = range(4)
_VERDICTS = (Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.PASS, Verdict.REGRESSION)

# Of four values the MAD says little.
_FEWEST_FOR_MAD = 5


@dataclass(frozen=True)
class Verdicts:
    """What became of each case. An improvement counts as the PASS that it is made of.

    Attributes:
        codes: INCONCLUSIVE, PASS, HOST_SHIFT or REGRESSION, shape (cases,).
        at: position in `looks` of the look that decided; the last one where none did.
        looks: (new starts, controls) of each look.
    """

    codes: Codes
    at: Codes
    looks: Looks

    @property
    def new(self) -> NDArray[np.int64]:
        """Fresh starts of the new build in each case."""
        return np.array([new for new, _ in self.looks])[self.at]

    @property
    def controls(self) -> NDArray[np.int64]:
        """Controls in each case."""
        return np.array([controls for _, controls in self.looks])[self.at]

    def first(self) -> tuple[Verdict, int]:
        """The verdict of the first case, and its fresh starts of the new build."""
        return _VERDICTS[self.codes[0]], int(self.new[0])

    def share(self, *codes: int) -> float:
        """The share of cases with one of the codes."""
        return float(np.isin(self.codes, codes).mean())


@dataclass(frozen=True)
class Levels:
    """What the new build of each case is compared with.

    Attributes:
        centre: mean of each winsorised baseline, shape (cases,).
        sigma: noise of one start, shape (cases,).
        dof: degrees of freedom behind it.
        n_base: starts of each baseline.
        sessions: sessions behind each: of one session, all starts share its luck.
        between: the share ρ of the variance that a session has in common.
        pulled: outlying values of each baseline that were winsorised.
    """

    centre: Floats
    sigma: Floats
    dof: float
    n_base: float
    sessions: float
    between: float
    pulled: NDArray[np.intp]

    def standard_error(self, starts: int) -> Floats:
        """That of the mean of so many new starts of one session against the baseline's.

        SEh = s √(ρ (1 + 1/D) + (1-ρ) (1/n + 1/n_base)) (statistics §2).
        """
        shared = self.between * (1 + 1 / self.sessions)
        own = (1 - self.between) * (1 / starts + 1 / self.n_base)
        return self.sigma * math.sqrt(shared + own)

    def control_error(self, starts: int, controls: int) -> Floats:
        """That of so many new starts against controls of the same session.

        SEc = s √((1-ρ) (1/m + 1/j)) (statistics §2).
        """
        return self.sigma * math.sqrt((1 - self.between) * (1 / starts + 1 / controls))

    def bounds(self, new: Floats, rule: Rule) -> tuple[Floats, Floats, Floats]:
        """d = mean(new) - centre, L = d - t(1-alpha) SE, U = d + t(1-beta) SE, of each case."""
        loss, error = new.mean(axis=1) - self.centre, self.standard_error(new.shape[1])
        low = loss - t_quantile(1 - rule.alpha, self.dof) * error
        return loss, low, loss + t_quantile(1 - rule.beta, self.dof) * error

    def estimate(self, new: Sequence[float], rule: Rule) -> Estimate:
        """What new starts say against the baseline of the first case."""
        return Estimate(*(float(bound[0]) for bound in self.bounds(as_cases([new]), rule)))

    def smallest_detectable(self, starts: int, alpha: float) -> Floats:
        """The smallest true loss that so many starts find in 19 of 20 runs.

        (t(1 - alpha, ν) + t(1 - 0.05, ν)) SE, the minimum detectable effect of a one-sided t test.
        """
        reach = t_quantile(1 - alpha, self.dof) + t_quantile(1 - MISSED, self.dof)
        return reach * self.standard_error(starts)

    def of(self, cases: Cases) -> "Levels":
        """Those of some of the cases."""
        pulled = self.pulled[cases]
        return replace(self, centre=self.centre[cases], sigma=self.sigma[cases], pulled=pulled)


def levels(
    base: Floats,
    sigma: float,
    *,
    sessions: float | None = None,
    between: float = BETWEEN,
    prior_dof: float = 10,
) -> Levels:
    """Winsorise each baseline, and pool its spread with the prior.

    s² = (ν0 σ0² + Σ (x - mean)²) / ν with ν = ν0 + n - 1: the mean of an inverse-chi-square prior
    worth ν0 observations, and the usual variance.

    Args:
        base: accepted values, shape (cases, starts).
        sigma: prior noise of one start, σ0.
        sessions: sessions behind each baseline; None: as many as starts.
        between: the share of the variance that a session has in common.
        prior_dof: how many observations the prior is worth, ν0.
    """
    n_base = base.shape[1]
    kept = winsorised(base, sigma)
    centre = kept.mean(axis=1)
    dof = prior_dof + n_base - 1
    squares = prior_dof * sigma**2 + ((kept - centre[:, None]) ** 2).sum(axis=1)
    behind, pulled = sessions or n_base, (kept != base).sum(axis=1)
    return Levels(centre, np.sqrt(squares / dof), dof, n_base, behind, between, pulled)


def as_cases(rows: Sequence[Sequence[float]]) -> Floats:
    """The starts of each case, of one number in all of them, as an array."""
    return np.array(rows, dtype=np.float64)


def winsorised(
    values: Floats, sigma: float, clip: float = CLIP, fewest_for_mad: float = _FEWEST_FOR_MAD
) -> Floats:
    """Outliers of each case pulled in to median ± `clip` r; nothing is dropped (statistics §2).

    r is sigma, from `fewest_for_mad` values on at least 1.4826 MAD. Below three values nothing is
    changed: nobody knows which one is the outlier.
    """
    number = values.shape[-1]
    if number < FEWEST:
        return values
    centre, reach = middle(values)[..., None], np.asarray(sigma)
    if number >= fewest_for_mad:
        reach = np.maximum(reach, 1.4826 * middle(np.abs(values - centre))[..., None])
    return np.clip(values, centre - clip * reach, centre + clip * reach)


def medians(values: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper median of each case."""
    ordered, last = np.sort(values, axis=-1), values.shape[-1] - 1
    return ordered[..., last // 2], ordered[..., (last + 1) // 2]


def middle(values: Floats) -> Floats:
    """The median of each case; `np.median` takes ten times as long for one."""
    lower, upper = medians(values)
    return np.asarray((lower + upper) / 2)


def controlled(
    against: Levels, new: Floats, controls: Floats, margin: float, rule: ControlRule
) -> Verdicts:
    """The rule with controls: fresh starts of the other build, made in the same session.

    Args:
        against: the baselines.
        new: losses of the new build in the order measured, shape (cases, starts); at least one.
        controls: those of the other build in the same session, shape (cases, controls).
        margin: the band.
        rule: constants and the order of starts; looks that need more starts are not made.
    """

    def look(cases: Cases, starts: int, beside: int) -> Codes:
        used = new[cases, :starts], controls[cases, :beside]
        return _controlled_look(against.of(cases), *used, margin, rule)

    there = new.shape[1], controls.shape[1]
    made = takewhile(lambda one: one[0] <= there[0] and one[1] <= there[1], rule.looks)
    return _decided(len(new), tuple(made), look)


def _controlled_look(
    against: Levels, new: Floats, controls: Floats, margin: float, rule: ControlRule
) -> Codes:
    h, starts, beside = against.centre, new.shape[1], controls.shape[1]
    t_alpha, t_beta, t_later = (
        t_quantile(1 - rate, against.dof) for rate in (rule.alpha, rule.beta, rule.later_beta)
    )
    loss = new.mean(axis=1) - h
    passed = loss + t_beta * against.standard_error(starts) < margin
    if starts < 2:
        return _codes(passed)
    later = new[:, 1:].mean(axis=1)  # leaves out the first start, which raised the suspicion
    passed |= later - h + t_later * against.standard_error(starts - 1) < margin
    if not beside:
        return _codes(passed)
    lower, upper = medians(controls)
    error = against.control_error(starts - 1, beside)
    shifted = np.zeros_like(passed)
    if beside >= 2:
        moved = lower - h > rule.shift * against.standard_error(1)
        shifted = moved & (later - lower + t_beta * error < margin)
    if beside >= 3:
        shifted |= later - lower + t_later * error < margin
    gaps = new - np.maximum(h, upper)[:, None]
    proved = gaps.min(axis=1) > rule.far * margin
    if beside >= 2:
        proved |= (gaps > rule.half * margin).sum(axis=1) >= rule.needed
    proved &= loss - t_alpha * against.standard_error(starts) > 0
    proved &= later - upper - t_alpha * error > 0
    fit = ~is_broken(against, controls, margin, rule)
    codes = _codes(passed, proved & fit)
    codes[~passed & shifted & fit] = HOST_SHIFT
    return codes


def is_broken(against: Levels, controls: Floats, margin: float, rule: ControlRule) -> Booleans:
    """Whether even the other build is slower than its history, by `rule.broken` bands."""
    return np.asarray(medians(controls)[0] - against.centre > rule.broken * margin)


def alone(
    against: Levels, new: Floats, margin: float, rule: Rule, *, required: bool = False
) -> Verdicts:
    """The rule without controls: a second start that agrees by itself confirms a loss.

    Args:
        against: the baselines.
        new: losses in the order measured, shape (cases, starts).
        margin: the band.
        rule: error rates and effort.
        required: whether a loss without control is INCONCLUSIVE.
    """

    def look(cases: Cases, starts: int, _: int) -> Codes:
        level, values = against.of(cases), new[cases, :starts]
        low, high = level.bounds(values, rule)[1:]
        if starts < 2:
            return _codes(high < margin)
        # The first start raised the suspicion, so only later ones can confirm it.
        return _codes(high < margin, (low > 0) & (level.bounds(values[:, 1:], rule)[1] > 0))

    most = min(rule.max_runs, new.shape[1])
    found = _decided(len(new), without_controls(most), look)
    if required:
        found.codes[found.codes == REGRESSION] = INCONCLUSIVE
    return found


def stipulated(
    losses: Floats,
    errors: Sequence[float] | Floats,
    margin: float,
    rule: NormalRule,
    *,
    least: float = 0.0,
    agreed: Booleans | None = None,
) -> Verdicts:
    """The rule where the noise is known beforehand: of documented values and of accuracies.

    Look n: d + z(pass) SE < margin is PASS; n >= 2 and d - z(loss) SE > least is REGRESSION.

    Args:
        losses: d of the first n starts, shape (cases, looks).
        errors: SE of each; shape (looks,) or (cases, looks).
        margin: the band.
        rule: z(pass), z(loss).
        least: the loss that is to be exceeded.
        agreed: whether enough of the first n starts agree on a loss; None: that is not asked.
    """
    passed = losses + rule.pass_z * np.asarray(errors) < margin
    lost = losses - rule.loss_z * np.asarray(errors) > least
    if agreed is not None:
        lost &= agreed
    lost[:, 0] = False
    codes, looks = _codes(passed, lost), without_controls(losses.shape[1])
    return _decided(len(losses), looks, lambda cases, starts, _: codes[cases, starts - 1])


def running_means(values: Floats) -> Floats:
    """The mean of the first n starts of each case, for each n."""
    return np.asarray(np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1))


@dataclass(frozen=True)
class Differences:
    """How the answers of a new build differ from the baseline's, question by question.

    D, of each question, is the share of the baseline's evaluations that got it right less that of
    the new build's. One row is one case; column n is of the first n+1 evaluations.

    Attributes:
        questions: asked in each evaluation.
        base_runs: evaluations of the baseline.
        sums: of D.
        squares: of D².
        alone: of D, of each single evaluation.
    """

    questions: int
    base_runs: int
    sums: Floats
    squares: Floats
    alone: Floats

    @property
    def drops(self) -> Floats:
        """d = mean(D)."""
        return self.sums / self.questions

    @property
    def errors(self) -> Floats:
        """SE of d, with one changed answer more than were seen."""
        spread = np.maximum(self.squares - self.questions * self.drops**2, 0)
        runs = np.arange(1, self.sums.shape[1] + 1)
        error = np.sqrt(spread + 1 / np.minimum(runs, self.base_runs))
        return np.asarray(error / self.questions)

    def lose_more_than(self, least: float) -> Floats:
        """How many of the first evaluations lose more than that, each alone."""
        return np.cumsum(self.alone / self.questions > least, axis=1)


def differences_of(
    baseline: Sequence[Sequence[bool]], new: Sequence[Sequence[bool]]
) -> tuple[Differences, Floats]:
    """Those of a single case; of each side the answers of each evaluation, in one order.

    Returns:
        the differences, and after each evaluation the answers lost and gained per evaluation.
    """
    before, now = np.array(baseline, dtype=np.int64).sum(axis=0), np.array(new, dtype=np.int64)
    runs = np.arange(1, len(now) + 1)
    # In whole numbers: D times both numbers of evaluations.
    whole = before * runs[:, None] - len(baseline) * np.cumsum(now, axis=0)
    scale = len(baseline) * runs
    found = Differences(
        len(before),
        len(baseline),
        (whole.sum(axis=1) / scale)[None],
        ((whole**2).sum(axis=1) / scale**2)[None],
        ((before - len(baseline) * now).sum(axis=1) / len(baseline))[None],
    )
    moved = np.stack([np.maximum(sign * whole, 0).sum(axis=1) / scale for sign in (1, -1)], axis=1)
    return found, moved


def without_controls(most: int) -> Looks:
    """The looks of a rule without controls: after each start."""
    return tuple((starts, 0) for starts in range(1, most + 1))


def _codes(passed: Booleans, lost: Booleans | None = None) -> Codes:
    """PASS goes before REGRESSION; neither is INCONCLUSIVE."""
    codes = np.zeros(passed.shape, dtype=np.int8)
    if lost is not None:
        codes[lost] = REGRESSION
    codes[passed] = PASS
    return codes


def _decided(number: int, looks: Looks, look: Callable[[Cases, int, int], Codes]) -> Verdicts:
    """Stop each case at the first look that decides it; `look` gives the codes of open cases."""
    codes = np.zeros(number, dtype=np.int8)
    at = np.full(number, len(looks) - 1, dtype=np.int8)
    undecided = np.arange(number)
    for position, (starts, controls) in enumerate(looks):
        found = look(undecided, starts, controls)
        done = found != INCONCLUSIVE
        codes[undecided[done]] = found[done]
        at[undecided[done]] = position
        undecided = undecided[~done]
        if not len(undecided):
            break
    return Verdicts(codes, at, looks)


def combine(metrics: Sequence[Verdicts]) -> Verdicts:
    """The verdicts of one probe: it ends with its first REGRESSION, or when all are decided.

    Args:
        metrics: at least one, of the same cases and looks. What is decided later than the
            probe's end is INCONCLUSIVE.
    """
    codes, at = (
        np.stack([one.codes for one in metrics]),
        np.stack([metric.at for metric in metrics]),
    )
    last = len(metrics[0].looks) - 1
    lost = np.where(codes == REGRESSION, at, last).min(axis=0)
    end = np.minimum(at.max(axis=0), lost)
    codes = np.where(at <= end, codes, INCONCLUSIVE)
    worst = np.select(
        [(codes == code).any(axis=0) for code in (REGRESSION, INCONCLUSIVE, HOST_SHIFT)],
        [REGRESSION, INCONCLUSIVE, HOST_SHIFT],
        PASS,
    )
    return Verdicts(worst.astype(np.int8), end.astype(np.int8), metrics[0].looks)
