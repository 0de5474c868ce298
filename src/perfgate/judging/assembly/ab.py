"""A/B of a probe: the measurements of two builds, as a `JudgeInput`. Pure; no baseline is needed.

REGRESSION: B is worse than A. What is measured for it never becomes a baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.assembly.bands import band_of, noise_of
from perfgate.judging.assembly.judge_input import JudgeInput
from perfgate.judging.assembly.judgement import nothing_to_judge, require_metrics
from perfgate.judging.assembly.measured import answers_of, measured_score
from perfgate.judging.rules.accuracy import Answers, Score, pooled_score
from perfgate.judging.rules.paired import AB_RULE, judge_ab
from perfgate.judging.rules.probe import AccuracyTest, PerformanceTest, RunNoise
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario

# An accuracy is asked no oftener than against a baseline.
_ACCURACY_RULE = Rule(max_runs=3)


@dataclass(frozen=True)
class AbTest:
    """A speed of two builds; fields are the arguments of `judge_ab`."""

    metric: str
    a: Sequence[float]
    b: Sequence[float]
    band: float | None
    noise: RunNoise

    def judge(self, rule: Rule) -> Judgement:  # noqa: ARG002 (an A/B has its own)
        """The verdict; errors as of `judge_ab`."""
        noise = self.noise
        judged = judge_ab(
            self.metric,
            self.a,
            self.b,
            band=self.band,
            sigma=noise.sigma,
            between=noise.between,
            measured_noise=noise.widen,
        )
        return replace(judged, notes=(*judged.notes, noise.note)) if noise.note else judged


@dataclass(frozen=True)
class AbAccuracyTest:
    """An accuracy of two builds; fields as in `AccuracyTest`, A in place of a baseline."""

    metric: str
    band: float | None
    answers: tuple[Sequence[Answers], Sequence[Answers]]
    scores: tuple[Score, Sequence[Score]] | None
    measured: tuple[Mapping[str, float], Mapping[str, float]]

    def judge(self, rule: Rule) -> Judgement:
        """The verdict; errors as of `AccuracyTest.judge`."""
        judged = AccuracyTest(**vars(self), against="ab").judge(rule)
        if judged.change is None:
            return judged
        ahead = "lower" if judged.change < 0 else "higher"
        told = f"B is {abs(100 * judged.change):.1f} points {ahead} than A"
        return replace(judged, reason=f"{told}: {judged.reason}")


def ab_input(
    probe: Probe,
    a: Sequence[Measurement],
    b: Sequence[Measurement],
    noise: Mapping[str, RunNoise],
) -> JudgeInput:
    """All that the verdict of `probe` rests on.

    Args:
        probe: what was measured.
        a, b: what each build gave, one per start in order; none that was disturbed.
        noise: metric → noise of one start, where it was measured beforehand.

    Raises:
        InputError: no gating metric, or a score of an unknown number of questions.
        RunError: a measurement lacks a gating metric (class ``no_metrics``).
    """
    metrics, scenario = probe.gating_metrics(), probe.scenario
    if not metrics:
        raise nothing_to_judge(probe)
    require_metrics(metrics, a, " of A")
    require_metrics(metrics, b, " of B")
    tests = [
        _accuracy(probe, one, a, b)
        if is_accuracy(one)
        else AbTest(
            one,
            [measured.metrics[one] for measured in a],
            [measured.metrics[one] for measured in b],
            band_of(one, scenario),
            noise_of(one, scenario, noise),
        )
        for one in metrics
    ]
    reported = set.intersection(*(set(one.metrics) for one in (*a, *b))) - set(metrics)
    observed = [
        _observed(one, scenario, a, b, noise)
        for one in sorted(reported)
        if probe.is_load and not is_accuracy(one)
    ]
    return JudgeInput.of(scenario, probe.label, _ACCURACY_RULE, tests=tests, observed=observed)


def _accuracy(
    probe: Probe, metric: str, a: Sequence[Measurement], b: Sequence[Measurement]
) -> AbAccuracyTest:
    """Answer by answer where both builds' are known, else by their scores."""
    answers = (answers_of(metric, a), answers_of(metric, b))
    scores = None
    if not (all(answers[0]) and all(answers[1])):
        theirs = [measured_score(metric, one) for one in a]
        scores = (pooled_score(theirs), [measured_score(metric, one) for one in b])
    measured = (a[-1].metrics, b[-1].metrics)
    return AbAccuracyTest(metric, band_of(metric, probe.scenario), answers, scores, measured)


def _observed(
    metric: str,
    scenario: Scenario,
    a: Sequence[Measurement],
    b: Sequence[Measurement],
    noise: Mapping[str, RunNoise],
) -> PerformanceTest:
    """A metric that is reported and does not gate: both builds share their session's noise."""
    known = noise_of(metric, scenario, noise)
    sigma = lookup(metric).family.sigma if known.sigma is None else known.sigma
    before, now = ([one.metrics[metric] for one in side][: AB_RULE.most] for side in (a, b))
    within = RunNoise(sigma * sqrt(1 - known.between), between=0.0)
    return PerformanceTest(metric, None, before, now, within)
