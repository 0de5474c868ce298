"""Controlled test: the new build against its history and against controls. Pure.

A control is a fresh start of the other build, made in the same session and only on suspicion. The
rule, its constants and their simulated error rates: statistics §2, here
docs/reference/verdicts.md, "The rule for performance". Values are on the log scale of
`perfgate.judging.rules.scale`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from perfgate.core.rule import ControlRule
from perfgate.core.verdict import Mark, Verdict
from perfgate.judging.rules.baseline_level import BaselineLevel
from perfgate.judging.rules.noise import t_quantile

Need = Literal["", "new", "control"]


@dataclass(frozen=True)
class Decision:
    """What the starts made so far decide.

    Attributes:
        verdict: PASS, REGRESSION or INCONCLUSIVE.
        new: fresh starts of the new build that it rests on.
        controls: controls that it rests on.
        mark: HOST_SHIFT: it passes only because the other build is as slow in this session;
            MACHINE: even the other build is slower than its history by far, so nothing is proved.
        need: which start is wanted next; empty: it is decided, or none is left.
    """

    verdict: Verdict
    new: int
    controls: int
    mark: Mark = ""
    need: Need = ""


def decide(
    level: BaselineLevel,
    new: Sequence[float],
    controls: Sequence[float],
    margin: float,
    rule: ControlRule,
) -> Decision:
    """Look at the starts in the rule's order and stop at the first look that decides.

    Args:
        level: the history that the new build is held against.
        new: losses of the new build, one per fresh start, in the order measured; at least one.
        controls: those of the other build in the same session, in the order measured.
        margin: the band on the scale.
        rule: constants and the order of starts.
    """
    n = j = 0
    for n, j in rule.looks:
        if len(new) < n or len(controls) < j:
            need: Need = "new" if len(new) < n else "control"
            had = min(n, len(new)), min(j, len(controls))
            return Decision(
                Verdict.INCONCLUSIVE, *had, _broken(level, controls[:j], margin, rule), need
            )
        found = _look(level, new[:n], controls[:j], margin, rule)
        if found is not None:
            verdict, mark = found
            return Decision(verdict, n, j, mark)
    return Decision(Verdict.INCONCLUSIVE, n, j, _broken(level, controls[:j], margin, rule))


def _look(
    level: BaselineLevel,
    new: Sequence[float],
    controls: Sequence[float],
    margin: float,
    rule: ControlRule,
) -> tuple[Verdict, Mark] | None:
    """What one look decides; None: nothing yet."""
    h, n, j = level.centre, len(new), len(controls)
    t_alpha, t_beta, t_later = (
        t_quantile(1 - rate, level.noise.dof) for rate in (rule.alpha, rule.beta, rule.later_beta)
    )
    mean = fmean(new)
    if mean - h + t_beta * level.standard_error(n) < margin:
        return Verdict.PASS, ""
    if n < 2:
        return None
    later = fmean(new[1:])  # leaves out the first start, which raised the suspicion
    if later - h + t_later * level.standard_error(n - 1) < margin:
        return Verdict.PASS, ""
    if not j or _broken(level, controls, margin, rule):
        return None
    lower, upper = _medians(controls)
    error = level.control_error(n - 1, j)
    shifted = lower - h > rule.shift * level.standard_error(1)
    if (j >= 2 and shifted and later - lower + t_beta * error < margin) or (
        j >= 3 and later - lower + t_later * error < margin
    ):
        return Verdict.PASS, "HOST_SHIFT"
    gaps = [x - max(h, upper) for x in new]
    many = j >= 2 and sum(gap > rule.half * margin for gap in gaps) >= rule.needed
    if (
        mean - h - t_alpha * level.standard_error(n) > 0
        and later - upper - t_alpha * error > 0
        and (many or min(gaps) > rule.far * margin)
    ):
        return Verdict.REGRESSION, ""
    return None


def _broken(
    level: BaselineLevel, controls: Sequence[float], margin: float, rule: ControlRule
) -> Mark:
    """MACHINE where even the other build is slower than its history by `rule.broken` bands."""
    if controls and _medians(controls)[0] - level.centre > rule.broken * margin:
        return "MACHINE"
    return ""


def _medians(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper median."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
