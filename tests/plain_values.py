"""Values and settings as plain arguments, judged by the rules: what most tests of verdicts give."""

from collections.abc import Sequence
from typing import Any

from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.rules.noise import BETWEEN, RunNoise
from perfgate.judging.rules.performance import Change, Comparison, describe, judge
from perfgate.judging.rules.sweep import judge_curve


def comparison(
    metric: str,
    baseline: Sequence[Any],
    new: Sequence[Any],
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    widen: bool = False,
    why_no_control: str = "",
    **settings: Any,
) -> Comparison:
    noise = RunNoise(sigma, between, widen=widen)
    return Comparison(metric, band, baseline, new, noise, why_no_control=why_no_control, **settings)


def judge_performance(*values: Any, rule: Rule | None = None, **settings: Any) -> Judgement:
    return judge(comparison(*values, **settings), rule or Rule())


def judge_sweep(*values: Any, rule: Rule | None = None, **settings: Any) -> Judgement:
    return judge_curve(comparison(*values, **settings), rule or Rule())


def describe_change(*values: Any, rule: Rule | None = None, **settings: Any) -> Change:
    return describe(comparison(*values, **settings), rule or Rule())
