"""The rules once more, as plainly as they can be written: one case at a time, without arrays.

What the product does for many cases at once is held against them case by case. Values are losses
on the log scale, of accuracies drops; a verdict comes with the starts that it rests on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from typing import NamedTuple

from scipy.stats import t as student

from perfgate.core.verdict import Rule
from perfgate.judging.rules.constants import ControlRule

Values = Sequence[float]


class Found(NamedTuple):
    """A verdict, the starts of the new build and controls behind it, and what it speaks of."""

    verdict: str
    new: int
    controls: int = 0
    mark: str = ""


@dataclass(frozen=True)
class Level:
    """What the new build is compared with."""

    centre: float
    sigma: float
    dof: float
    n_base: int
    sessions: float
    between: float

    def error(self, starts: int) -> float:
        shared = self.between * (1 + 1 / self.sessions)
        own = (1 - self.between) * (1 / starts + 1 / self.n_base)
        return self.sigma * math.sqrt(shared + own)

    def control_error(self, starts: int, controls: int) -> float:
        return self.sigma * math.sqrt((1 - self.between) * (1 / starts + 1 / controls))

    def t(self, rate: float) -> float:
        return quantile(rate, self.dof)


@cache
def quantile(rate: float, dof: float) -> float:
    return float(student.ppf(1 - rate, dof))


def level(base: Values, sigma: float, sessions: float, between: float, prior_dof: float) -> Level:
    kept = list(base)
    if len(base) >= 3:
        centre, reach = median(base), sigma
        if len(base) >= 5:
            reach = max(reach, 1.4826 * median([abs(x - centre) for x in base]))
        kept = [min(max(x, centre - 2 * reach), centre + 2 * reach) for x in base]
    mean, dof = fmean(kept), prior_dof + len(kept) - 1
    squares = prior_dof * sigma**2 + math.fsum((x - mean) ** 2 for x in kept)
    return Level(mean, math.sqrt(squares / dof), dof, len(base), sessions, between)


def controlled(
    against: Level, new: Values, controls: Values, margin: float, rule: ControlRule
) -> Found:
    """Look at the starts in the rule's order and stop at the first look that decides."""
    used = (0, 0)
    for n, j in rule.looks:
        used = min(n, len(new)), min(j, len(controls))
        if used != (n, j):
            break
        found = _look(against, new[:n], controls[:j], margin, rule)
        if found:
            return Found(found[0], n, j, found[1])
    broken = _is_broken(against, controls[: used[1]], margin, rule)
    return Found("INCONCLUSIVE", *used, "MACHINE" if broken else "")


def _look(
    against: Level, new: Values, controls: Values, margin: float, rule: ControlRule
) -> tuple[str, str] | None:
    h, n, j = against.centre, len(new), len(controls)
    t_alpha, t_beta, t_later = map(against.t, (rule.alpha, rule.beta, rule.later_beta))
    mean = fmean(new)
    if mean - h + t_beta * against.error(n) < margin:
        return "PASS", ""
    if n < 2:
        return None
    later = fmean(new[1:])
    if later - h + t_later * against.error(n - 1) < margin:
        return "PASS", ""
    if not j or _is_broken(against, controls, margin, rule):
        return None
    lower, upper = _medians(controls)
    error = against.control_error(n - 1, j)
    shifted = lower - h > rule.shift * against.error(1)
    if (j >= 2 and shifted and later - lower + t_beta * error < margin) or (
        j >= 3 and later - lower + t_later * error < margin
    ):
        return "PASS", "HOST_SHIFT"
    gaps = [x - max(h, upper) for x in new]
    many = j >= 2 and sum(gap > rule.half * margin for gap in gaps) >= rule.needed
    is_real = mean - h - t_alpha * against.error(n) > 0 and later - upper - t_alpha * error > 0
    return ("REGRESSION", "") if is_real and (many or min(gaps) > rule.far * margin) else None


def _is_broken(against: Level, controls: Values, margin: float, rule: ControlRule) -> bool:
    return bool(controls) and _medians(controls)[0] - against.centre > rule.broken * margin


def _medians(values: Values) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]


def alone(against: Level, new: Values, margin: float, rule: Rule, *, required: bool) -> Found:
    """Without controls: a second start that agrees by itself confirms a loss."""
    t_low, t_high = against.t(rule.alpha), against.t(rule.beta)
    most = min(rule.max_runs, len(new))
    for n in range(1, most + 1):
        loss, error = fmean(new[:n]) - against.centre, against.error(n)
        if loss + t_high * error < margin:
            return Found("PASS", n)
        later = fmean(new[1:n]) - against.centre - t_low * against.error(n - 1) if n > 1 else 0.0
        if loss - t_low * error > 0 and later > 0:
            return Found("INCONCLUSIVE" if required else "REGRESSION", n, mark="NO_CONTROL")
    return Found("INCONCLUSIVE", most)


def documented(losses: Values, margin: float, sigma: float) -> Found:
    for n in range(1, min(len(losses), 3) + 1):
        m = sorted(losses[:3])[1] if n == 3 else sum(losses[:n]) / n
        se = sigma * (1 / n + 1) ** 0.5
        if m + 1.96 * se < margin:
            return Found("PASS", n)
        if n >= 2 and m - 2.58 * se > margin:
            return Found("REGRESSION", n)
    return Found("INCONCLUSIVE", min(len(losses), 3))


def unpaired(document: float, error: float, shares: Values, n: int, m: float) -> Found:
    per_question = document * (1 - document)
    m = max(m, 3.5 * math.sqrt(error**2 + per_question / n))
    for r in range(1, min(len(shares), 3) + 1):
        d = document - sum(shares[:r]) / r
        se = math.sqrt(error**2 + per_question / (n * r))
        if d + 1.645 * se < m:
            return Found("PASS", r)
        if r >= 2 and d - 2.576 * se > 0:
            return Found("REGRESSION", r)
    return Found("INCONCLUSIVE", min(len(shares), 3))


def paired(base: Sequence[Sequence[bool]], new: Sequence[Sequence[bool]], margin: float) -> Found:
    n, rb = len(base[0]), len(base)
    mean_base = [sum(one[q] for one in base) / rb for q in range(n)]
    for r in range(1, min(len(new), 3) + 1):
        difference = [mean_base[q] - sum(one[q] for one in new[:r]) / r for q in range(n)]
        d = sum(difference) / n
        se = math.sqrt(max(sum(x * x for x in difference) - n * d * d, 0) + 1 / min(r, rb)) / n
        if d + 1.645 * se < margin:
            return Found("PASS", r)
        each = [sum(mean_base) / n - sum(one) / n for one in new[:r]]
        if r >= 2 and d - 2.88 * se > 0 and sum(x > margin / 2 for x in each) >= 2:
            return Found("REGRESSION", r)
    return Found("INCONCLUSIVE", min(len(new), 3))
