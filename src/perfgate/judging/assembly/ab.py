"""A/B of a probe: the measurements of two builds in, judgements out. Pure; no baseline is needed.

REGRESSION: B is worse than A. What is measured for it never becomes a baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt

from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.assembly.bands import band_of
from perfgate.judging.assembly.documented_values import measured_score
from perfgate.judging.assembly.judgement import noise_of, nothing_to_judge
from perfgate.judging.rules.ab import judge_ab
from perfgate.judging.rules.paired import AB_RULE
from perfgate.judging.rules.performance import Change, Comparison, describe
from perfgate.judging.rules.probe import AccuracyTest, ProbeJudgement, RunNoise, together
from perfgate.judging.rules.scores import pooled_score
from perfgate.scenarios.probe import Probe

# An accuracy is asked no oftener than against a baseline.
_ACCURACY_RULE = Rule(max_runs=3)


def judge_ab_probe(
    probe: Probe,
    a: Sequence[Measurement],
    b: Sequence[Measurement],
    noise: Mapping[str, RunNoise],
) -> ProbeJudgement:
    """Judge every gating metric of `probe` and take the worst verdict.

    Args:
        probe: what was measured.
        a, b: what each build gave, one per start in order; none that was disturbed.
        noise: metric → noise of one start, where it was measured beforehand.

    Raises:
        InputError: no gating metric, or values that cannot be judged.
        RunError: a measurement lacks a gating metric (class ``no_metrics``).
    """
    metrics = probe.gating_metrics()
    if not metrics:
        raise nothing_to_judge(probe)
    _require(metrics, {"A": a, "B": b})
    judged = together(
        [
            _accuracy(probe, one, a, b) if is_accuracy(one) else _speed(probe, one, a, b, noise)
            for one in metrics
        ]
    )
    observed, notes = _observed(probe, metrics, a, b, noise)
    return replace(judged, observed=observed, notes=notes)


def _require(metrics: Sequence[str], sides: Mapping[str, Sequence[Measurement]]) -> None:
    for side, measurements in sides.items():
        for start, measurement in enumerate(measurements, start=1):
            missing = [one for one in metrics if one not in measurement.metrics]
            if missing:
                raise RunError(
                    "no_metrics",
                    f"the result of start {start} of {side} lacks {', '.join(missing)}, which "
                    "gates",
                )


def _speed(
    probe: Probe,
    metric: str,
    a: Sequence[Measurement],
    b: Sequence[Measurement],
    noise: Mapping[str, RunNoise],
) -> Judgement:
    known = noise_of(metric, probe.scenario, noise)
    judged = judge_ab(
        metric,
        [one.metrics[metric] for one in a],
        [one.metrics[metric] for one in b],
        band=band_of(metric, probe.scenario),
        sigma=known.sigma,
        between=known.between,
        measured_noise=known.widen,
    )
    return replace(judged, notes=(*judged.notes, known.note)) if known.note else judged


def _accuracy(
    probe: Probe, metric: str, a: Sequence[Measurement], b: Sequence[Measurement]
) -> Judgement:
    """Answer by answer where both builds' are known, else by their scores."""
    answers = (
        [one.answers.get(metric, {}) for one in a],
        [one.answers.get(metric, {}) for one in b],
    )
    scores = None
    if not (all(answers[0]) and all(answers[1])):
        theirs = [measured_score(metric, one) for one in a]
        scores = (pooled_score(theirs), [measured_score(metric, one) for one in b])
    judged = AccuracyTest(
        metric,
        band_of(metric, probe.scenario),
        answers,
        scores,
        (a[-1].metrics, b[-1].metrics),
        against="ab",
    ).judge(_ACCURACY_RULE)
    if judged.change is None:
        return judged
    ahead = "lower" if judged.change < 0 else "higher"
    told = f"B is {abs(100 * judged.change):.1f} points {ahead} than A"
    return replace(judged, reason=f"{told}: {judged.reason}")


def _observed(
    probe: Probe,
    gating: Sequence[str],
    a: Sequence[Measurement],
    b: Sequence[Measurement],
    noise: Mapping[str, RunNoise],
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """How the metrics moved that are reported and do not gate, and notes on those that cannot."""
    if not probe.is_load:
        return (), ()
    reported = set.intersection(*(set(one.metrics) for one in (*a, *b))) - set(gating)
    found, notes = [], []
    for metric in sorted(reported):
        known = noise_of(metric, probe.scenario, noise)
        within = sqrt(1 - known.between)
        sigma = lookup(metric).family.sigma if known.sigma is None else known.sigma
        before, now = ([one.metrics[metric] for one in side][: AB_RULE.most] for side in (a, b))
        if is_accuracy(metric):
            continue
        try:
            of_pairs = RunNoise(sigma * within, between=0.0)
            found.append(describe(Comparison(metric, None, before, now, of_pairs)))
        except InputError as error:  # what does not gate spoils no verdict
            notes.append(f"{metric} is not compared: {error.problem}")
    return tuple(found), tuple(notes)
