"""One probe that two sides have: whether it can be compared, and the gate's verdicts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.baselines.baseline import common_facts
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import FEWEST_REFERENCES, Rule
from perfgate.core.verdict import Judgement, Verdict, counted, verdict_of
from perfgate.judging.comparison.comparability import PROGRAM, Fact, differences, fingerprint_facts
from perfgate.judging.comparison.sides import Measured
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules.diagnostics import false_discoveries
from perfgate.judging.rules.performance import Change
from perfgate.judging.rules.probe import (
    AccuracyTest,
    MetricTest,
    PerformanceTest,
    RunNoise,
    judge_tests,
)
from perfgate.judging.rules.scores import Score, pooled_score


@dataclass(frozen=True)
class ComparisonOptions:
    """How to compare.

    Attributes:
        bands: metric → band, where not the metric's own.
        across: facts that are meant to differ.
        probes: names or labels of the probes to compare; empty: all.
        metrics: metrics that are judged; the others are then reported. Empty: all with a band.
        rule: error rates and effort.
        noise: label of a hardware → metric → noise of one start, as far as its history is known.
    """

    bands: Mapping[str, float] = field(default_factory=dict)
    across: frozenset[str] = frozenset()
    probes: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    rule: Rule = field(default_factory=Rule)
    noise: Mapping[str, Mapping[str, RunNoise]] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbeComparison:
    """What became of one probe that both sides have.

    Attributes:
        name: the probe's.
        verdict: the worst of its judgements; NOT_COMPARABLE or ERROR where there are none.
        judgements: one per metric with a band.
        reported: the changes of the metrics without one.
        warned: those of the reported metrics whose loss is hardly chance.
        reason: why there are no judgements; empty if there are.
        across: the facts that differ as meant, in words.
        starts: fresh starts of A and of B.
        only_in_a: metrics that B lacks.
        only_in_b: metrics that A lacks.
        warnings: what a reader should know of it.
    """

    name: str
    verdict: Verdict
    judgements: tuple[Judgement, ...] = ()
    reported: tuple[Change, ...] = ()
    warned: tuple[str, ...] = ()
    reason: str = ""
    across: tuple[str, ...] = ()
    starts: tuple[int, int] = (0, 0)
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def facts_of(a: Measured, b: Measured) -> tuple[Mapping[str, Fact], Mapping[str, Fact]]:
    """What must agree: fingerprints if both have one, else what the results tell of the load."""
    if a.fingerprint is None or b.fingerprint is None:
        return a.facts, b.facts
    names = common_facts(a.fingerprint, b.fingerprint)
    return fingerprint_facts(a.fingerprint, names), fingerprint_facts(b.fingerprint, names)


def shared_metrics(a: Measured, b: Measured) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """The metrics of both, of A alone, of B alone."""
    of_a, of_b = a.metrics(), b.metrics()
    return (
        [metric for metric in of_a if metric in of_b],
        tuple(metric for metric in of_a if metric not in of_b),
        tuple(metric for metric in of_b if metric not in of_a),
    )


def compare_probe(
    name: str, a: Measured, b: Measured, options: ComparisonOptions
) -> ProbeComparison:
    """Judge every metric that both sides have of one probe.

    Raises:
        InputError: values that cannot be judged, or a score of an unknown number of questions.
    """
    starts = (len(a.runs), len(b.runs))
    failures = [
        f"{side} failed: {one.failure}" for side, one in (("A", a), ("B", b)) if one.failure
    ]
    if failures:
        return ProbeComparison(name, Verdict.ERROR, reason="; ".join(failures), starts=starts)
    matter, meant = differences(*facts_of(a, b), options.across)
    if matter:
        return ProbeComparison(
            name,
            Verdict.NOT_COMPARABLE,
            reason="; ".join(matter),
            across=tuple(meant),
            starts=starts,
        )
    shared, only_a, only_b = shared_metrics(a, b)
    noise, warnings = _noise(a, b, options.noise)
    bands = {metric: _band(metric, options) for metric in shared}
    scores = [_accuracy_test(one, bands[one], a, b) for one in shared if is_accuracy(one)]
    speeds = [
        PerformanceTest(
            one, bands[one], a.values(one), b.values(one), noise.get(one, RunNoise()), a.sessions
        )
        for one in shared
        if not is_accuracy(one)
    ]
    tests: list[MetricTest] = [*scores, *speeds]
    judgements = judge_tests([one for one in tests if one.band is not None], options.rule)
    reported = tuple(one.change(options.rule) for one in speeds if one.band is None)
    called_out = false_discoveries([one.p_value for one in reported]) if reported else ()
    return ProbeComparison(
        name,
        verdict_of(judgements) if judgements else Verdict.NOT_COMPARABLE,
        judgements,
        reported,
        tuple(one.metric for one, out in zip(reported, called_out, strict=True) if out),
        ""
        if judgements
        else "none of the metrics that both sides have is judged: they have no band",
        tuple(meant),
        starts,
        only_a,
        only_b,
        (*warnings, *_warnings(a, b, options.rule)),
    )


def _warnings(a: Measured, b: Measured, rule: Rule) -> list[str]:
    """What a reader should know of what was not compared, or not checked."""
    told = [
        f"{metric} is missing from some runs of {side} and is not compared"
        for side, one in (("A", a), ("B", b))
        for metric in one.partial()
    ]
    of_the_load = {name for name in a.facts.keys() & b.facts.keys() if not name.startswith(PROGRAM)}
    if not (of_the_load or (a.fingerprint and b.fingerprint)):
        told.append("nothing that both sides tell shows that they measured the same load")
    if len(b.runs) > rule.max_runs:
        used = counted(rule.max_runs, "fresh start")
        told.append(f"B has {len(b.runs)} fresh starts, of which the rule uses the first {used}")
    return told


def _noise(
    a: Measured, b: Measured, learnt: Mapping[str, Mapping[str, RunNoise]]
) -> tuple[Mapping[str, RunNoise], list[str]]:
    """Metric → noise of one start, and a warning where little is known of it.

    A machine that is its own reference is noisier than the priors of the metrics' families, which
    are those of GPU servers: it gets a weak prior, and its own spread decides.
    """
    if not (a.machine_bound or b.machine_bound):
        return learnt.get(a.hardware, {}), []
    own = RunNoise(noises.OWN_SIGMA, dof=noises.OWN_DOF, widen=True)
    noise = dict.fromkeys(shared_metrics(a, b)[0], own)
    if len(a.runs) >= FEWEST_REFERENCES:
        return noise, []
    few = counted(len(a.runs), "fresh start")
    return noise, [
        f"A has {few} on a machine that is its own reference: too few to measure its noise, so "
        "that only large changes are decided"
    ]


def _band(metric: str, options: ComparisonOptions) -> float | None:
    """The loss that counts; None: the metric is only reported."""
    if options.metrics and metric not in options.metrics:
        return None
    return options.bands.get(metric, lookup(metric).family.band)


def _accuracy_test(metric: str, band: float | None, a: Measured, b: Measured) -> AccuracyTest:
    """Paired where both sides have the answers; else by the scores of each side."""
    was, now = ([one.answers.get(metric, {}) for one in side.runs] for side in (a, b))
    scores = None
    if band is not None and not (all(was) and all(now)):
        known = [[_questions(metric, one) for one in side.runs] for side in (a, b)]
        if a.fingerprint and b.fingerprint:  # equal fingerprints asked the same questions
            told = next((one for one in (*known[0], *known[1]) if one), None)
            known = [[one or told for one in side] for side in known]
        before, after = (
            [
                _score(metric, value, asked)
                for value, asked in zip(side.values(metric), questions, strict=True)
            ]
            for side, questions in zip((a, b), known, strict=True)
        )
        scores = (pooled_score(before), after)
    measured = a.runs[0].metrics, b.runs[0].metrics
    return AccuracyTest(metric, band, (was, now), scores, measured)


def _questions(metric: str, measurement: Measurement) -> float | None:
    """The questions behind a score: counted, told, or as many as its standard error says."""
    value, facts = measurement.metrics[metric], measurement.facts
    answers = measurement.answers.get(metric)
    if answers:
        return len(answers)
    _, task, name, filter_name = metric.split(":")
    for key in (f"questions:{task}", "questions"):
        told = facts.get(key)
        if isinstance(told, int) and not isinstance(told, bool) and told > 0:
            return told
    error = facts.get(f"stderr:{task}:{name}:{filter_name}")
    if isinstance(error, int | float) and error > 0 and 0 < value < 1:
        # lm_eval's standard error is that of n - 1, and printed with four digits.
        return value * (1 - value) / error**2 + 1
    return None


def _score(metric: str, value: float, questions: float | None) -> Score:
    if questions is None:
        raise InputError(
            f"the number of questions behind {metric} is unknown",
            found=f"only the score {value:g}",
            expected="answers, the number of questions, or a standard error above 0",
            hint="compare lm_eval's results_*.json, which counts its questions",
        )
    return Score(value, questions)
