"""Simulated interleaved starts: their rule for many trials at once, in numpy. Draws no numbers.

Tests hold it against `rules.interleaved`, case by case. An IMPROVEMENT counts as the PASS
that it is made of.
"""

import math
from dataclasses import dataclass

import numpy as np

from perfgate.judging.rules.interleaved import InterleavedRule
from perfgate.judging.rules.noise import t_quantile
from perfgate.judging.rules.sequential import PASS, REGRESSION, Floats, Verdicts


@dataclass(frozen=True)
class InterleavedTrials:
    """What became of each trial, and the band that its noise forced.

    Attributes:
        verdicts: codes and starts of the new build.
        margins: the band of each trial on the log scale.
    """

    verdicts: Verdicts
    margins: Floats


def interleaved(
    references: Floats, new: Floats, declared: float, widest: float, rule: InterleavedRule
) -> InterleavedTrials:
    """`perfgate.judging.rules.interleaved.decide` for each trial, without earlier sessions.

    Args:
        references: of the session, log scale, shape (trials, starts).
        new: those of the new build in the order measured, shape (trials, most starts).
        declared: the declared band on the log scale.
        widest: the band that the rule calls too wide, on that scale.
        rule: constants.
    """
    centre, sigma, dof = _levels(references, rule)
    count = references.shape[1]
    t_low, t_high = t_quantile(1 - rule.alpha, dof), t_quantile(1 - rule.beta, dof)
    forced = (t_low + t_high) * sigma * math.sqrt(1 / rule.planned + 1 / count)
    margins = np.maximum(declared, forced)
    noisy = forced > widest
    codes = np.zeros(len(new), np.int8)
    at = np.full(len(new), len(rule.looks) - 1, np.int8)
    open_ = np.ones(len(new), dtype=np.bool_)
    for position, starts in enumerate(rule.looks):
        gaps = new[:, :starts] - centre[:, None]
        loss, error = gaps.mean(axis=1), math.sqrt(1 / starts + 1 / count)
        squares = dof * sigma**2 + ((gaps - loss[:, None]) ** 2).sum(axis=1)
        wide = np.maximum(sigma, np.sqrt(squares / (dof + starts - 1)))
        passed = open_ & ~noisy & (loss + t_high * sigma * error < margins)
        many = (gaps > rule.half * margins[:, None]).sum(axis=1) >= rule.needed
        lost = open_ & ~passed & many & (loss - t_low * wide * error > 0)
        lost &= ~noisy | (gaps.min(axis=1) > margins)
        codes[passed], codes[lost] = PASS, REGRESSION
        at[passed | lost] = position
        open_ &= ~(passed | lost)
        if position == 0:  # of a machine that is too noisy no further start is asked for
            at[open_ & noisy] = position
            open_ &= ~noisy
    return InterleavedTrials(
        Verdicts(codes, at, tuple((starts, 0) for starts in rule.looks)), margins
    )


def _levels(references: Floats, rule: InterleavedRule) -> tuple[Floats, Floats, float]:
    """Centre and noise of each trial, and the degrees of freedom behind it."""
    middle = np.median(references, axis=1, keepdims=True)
    spread = 1.4826 * np.median(np.abs(references - middle), axis=1, keepdims=True)
    reach = rule.clip * np.maximum(spread, rule.least_reach)
    kept = np.clip(references, middle - reach, middle + reach)
    centre, dof = kept.mean(axis=1), rule.dof + references.shape[1] - 1
    squares = rule.dof * rule.sigma**2 + ((kept - centre[:, None]) ** 2).sum(axis=1)
    return centre, np.sqrt(squares / dof), dof
