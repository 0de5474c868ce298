"""Values and settings as plain arguments, judged by the rules: what most tests of verdicts give."""

from collections.abc import Sequence
from typing import Any

from perfgate.core.measurement import Change
from perfgate.core.verdict import Judgement, Rule
from perfgate.judging.assembly.judge_input import JudgedTest, JudgeInput, ProbeJudgement, judge
from perfgate.judging.rules.noise import BETWEEN, RunNoise
from perfgate.judging.rules.performance import CurveTest, PerformanceTest


def performance_test(
    metric: str,
    baseline: Sequence[Any],
    new: Sequence[Any],
    *,
    band: float | None = None,
    sigma: float | None = None,
    between: float = BETWEEN,
    widen: bool = False,
    **settings: Any,
) -> PerformanceTest:
    noise = RunNoise(sigma, between, widen=widen)
    return PerformanceTest(metric, band, baseline, new, noise, **settings)


def judge_performance(*values: Any, rule: Rule | None = None, **settings: Any) -> Judgement:
    return performance_test(*values, **settings).judge(rule or Rule())


def judge_sweep(*values: Any, rule: Rule | None = None, **settings: Any) -> Judgement:
    test = performance_test(*values, **settings)
    return CurveTest(**vars(test)).judge(rule or Rule())


def describe_change(*values: Any, rule: Rule | None = None, **settings: Any) -> Change:
    return performance_test(*values, **settings).change(rule or Rule())


def judge_probe(
    tests: Sequence[JudgedTest], rule: Rule, *anchor: Any, **more: Any
) -> ProbeJudgement:
    return judge(JudgeInput("scenario", "hardware", "probe", rule, tests, *anchor, **more))
