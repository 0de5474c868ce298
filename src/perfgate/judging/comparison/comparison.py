"""Comparison: the gate's verdicts for two things that were measured, A the reference, B the new
one.

Pure. Reading them is the business of `perfgate.judging.comparison.sides`, showing the result that
of `perfgate.reports.comparison`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfgate.baselines.baseline import common_facts
from perfgate.core.errors import InputError
from perfgate.core.measured import Change
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import FEWEST_REFERENCES, Rule
from perfgate.core.verdict import Judgement, Verdict, counted
from perfgate.judging.assembly.judge_input import JudgeInput, judge
from perfgate.judging.comparison.comparability import PROGRAM, Fact, differences, fingerprint_facts
from perfgate.judging.comparison.sides import Measured, Side
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules.diagnostics import false_discoveries
from perfgate.judging.rules.probe import AccuracyTest, MetricTest, PerformanceTest, RunNoise
from perfgate.judging.rules.scores import Score, pooled_score

SCENARIO = "scenario"  # named as meant to differ, probes are matched by their labels alone


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
        reason: why there are no judgements; empty if there are.
        starts: fresh starts of A and of B.
        judgements: one per metric with a band.
        reported: the changes of the metrics without one.
        warned: those of the reported metrics whose loss is hardly chance.
        across: the facts that differ as meant, in words.
        only_in_a: metrics that B lacks.
        only_in_b: metrics that A lacks.
        warnings: what a reader should know of it.
    """

    name: str
    verdict: Verdict = Verdict.NOT_COMPARABLE
    reason: str = ""
    starts: tuple[int, int] = (0, 0)
    judgements: tuple[Judgement, ...] = ()
    reported: tuple[Change, ...] = ()
    warned: tuple[str, ...] = ()
    across: tuple[str, ...] = ()
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All that a comparison gives; `only_in_a` and `only_in_b` name probes."""

    a: Side
    b: Side
    probes: tuple[ProbeComparison, ...]
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()

    @property
    def synthetic(self) -> bool:
        """Whether stand-ins made numbers of either side."""
        return self.a.synthetic or self.b.synthetic

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of the sides."""
        sides = (("A", self.a), ("B", self.b))
        return (
            *(f"{name}: {text}" for name, side in sides for text in side.warnings),
            *(
                f"{name}: injected: {', '.join(side.injected)}"
                for name, side in sides
                if side.injected
            ),
        )


@dataclass(frozen=True)
class Pair:
    """A probe of A and the one of B that it is compared with, under the name that both get."""

    name: str
    a: Measured
    b: Measured

    def facts(self) -> tuple[Mapping[str, Fact], Mapping[str, Fact]]:
        """What must agree: fingerprints if both have one, else what results tell of the load."""
        a, b = self.a.fingerprint, self.b.fingerprint
        if a is None or b is None:
            return self.a.facts, self.b.facts
        names = common_facts(a, b)
        return fingerprint_facts(a, names), fingerprint_facts(b, names)

    @property
    def machine_bound(self) -> bool:
        """Whether the machine that measured either is its own reference."""
        return self.a.machine_bound or self.b.machine_bound

    def metrics(self) -> list[str]:
        """The metrics of both, sorted."""
        return [metric for metric in self.a.metrics() if metric in self.b.metrics()]


def compare(a: Side, b: Side, options: ComparisonOptions) -> Comparison:
    """Judge the new side B against the reference A, probe by probe.

    Raises:
        InputError: a run is on both sides, a name that is asked for is not there, or values that
            cannot be judged.
    """
    a, b = _chosen(a, options.probes), _chosen(b, options.probes)
    _require_two(a, b)
    pairs, only_a, only_b = _pairs(a, b, options.across)
    _require_known(options, pairs)
    return Comparison(a, b, tuple(_judged(pair, options) for pair in pairs), only_a, only_b)


def _chosen(side: Side, names: Sequence[str]) -> Side:
    """The side with the named probes only; results of other tools have but one, and no name."""
    if not names or side.kind == "files":
        return side
    for name in names:
        if not any(name in (probe.name, probe.label) for probe in side.probes):
            raise InputError(
                f"no such probe in {side.path}",
                field="--probe",
                found=name,
                expected="one of " + ", ".join(probe.name for probe in side.probes),
            )
    kept = [probe for probe in side.probes if {probe.name, probe.label} & set(names)]
    return replace(side, probes=tuple(kept))


def _require_two(a: Side, b: Side) -> None:
    """Refuse a run that is on both sides: it would pass whatever the build is like."""
    known = {one for probe in a.probes for one in probe.identities}
    shared = sorted(known & {one for probe in b.probes for one in probe.identities})
    if shared or a.path.resolve() == b.path.resolve():
        raise InputError(
            "both sides hold the same run, which proves nothing",
            file=b.path,
            found=shared[0] if shared else str(a.path),
            expected="two builds, each measured on its own",
            hint="name the run of the other build",
        )


def _pairs(
    a: Side, b: Side, across: Collection[str]
) -> tuple[list[Pair], tuple[str, ...], tuple[str, ...]]:
    """The probes that both sides have, and the names of those that only one has."""
    if "files" in (a.kind, b.kind):
        for side in (a, b):
            if len(side.probes) != 1:
                raise InputError(
                    "results of another tool can be compared with one probe only",
                    file=side.path,
                    field="--probe",
                    found=", ".join(probe.name for probe in side.probes),
                    expected="the name of one of them",
                )
        named = b if a.kind == "files" else a
        return [Pair(named.probes[0].name, a.probes[0], b.probes[0])], (), ()
    of_a, of_b = (_by_name(side, by_label=SCENARIO in across) for side in (a, b))
    return (
        [Pair(name, probe, of_b[name]) for name, probe in of_a.items() if name in of_b],
        tuple(name for name in of_a if name not in of_b),
        tuple(name for name in of_b if name not in of_a),
    )


def _by_name(side: Side, *, by_label: bool) -> dict[str, Measured]:
    if not by_label:
        return {probe.name: probe for probe in side.probes}
    scenarios = sorted({probe.scenario for probe in side.probes})
    if len(scenarios) > 1:
        raise InputError(
            "probes of several scenarios cannot be matched by their labels",
            file=side.path,
            field="--across",
            found=", ".join(scenarios),
            expected=f"one scenario on each side, as {SCENARIO} is meant to differ",
            hint="choose the probes of one scenario with --probe",
        )
    return {probe.label: probe for probe in side.probes}


def _require_known(options: ComparisonOptions, pairs: Sequence[Pair]) -> None:
    """Refuse names of facts and metrics that nothing here has: most likely they are misspelt."""
    facts = {SCENARIO} | {name for pair in pairs for side in pair.facts() for name in side}
    unknown = sorted(options.across - facts)
    if unknown and pairs:
        raise InputError(
            "no such fact",
            field="--across",
            found=", ".join(unknown),
            expected="facts of both sides: " + ", ".join(sorted(facts)),
        )
    shared = sorted({name for pair in pairs for name in pair.metrics()})
    for option, names in (("--band", options.bands), ("--metric", options.metrics)):
        for metric in names:
            lookup(metric)
            if pairs and metric not in shared:
                raise InputError(
                    "the two sides do not share this metric",
                    field=option,
                    found=metric,
                    expected="one of " + (", ".join(shared) or "none, as they share no metric"),
                )
    for metric in options.metrics:
        if metric not in options.bands and lookup(metric).family.band is None:
            raise InputError(
                f"{metric} has no band of its own, so that it cannot be judged",
                field="--metric",
                hint=f"add --band {metric}=FRACTION: the loss that counts",
            )


def _judged(pair: Pair, options: ComparisonOptions) -> ProbeComparison:
    """Judge every metric that both sides have of one probe.

    Raises:
        InputError: values that cannot be judged, or a score of an unknown number of questions.
    """
    a, b, rule = pair.a, pair.b, options.rule
    bare = ProbeComparison(pair.name, starts=(len(a.runs), len(b.runs)))
    failures = [
        f"{side} failed: {one.failure}" for side, one in (("A", a), ("B", b)) if one.failure
    ]
    if failures:
        return replace(bare, verdict=Verdict.ERROR, reason="; ".join(failures))
    matter, meant = differences(*pair.facts(), options.across)
    bare = replace(bare, across=tuple(meant))
    if matter:
        return replace(bare, reason="; ".join(matter))
    noise = _noise(pair, options.noise)
    bands = {metric: _band(metric, options) for metric in pair.metrics()}
    scores = [_accuracy_test(one, band, a, b) for one, band in bands.items() if is_accuracy(one)]
    speeds = [
        PerformanceTest(
            one, band, a.values(one), b.values(one), noise.get(one, RunNoise()), a.sessions
        )
        for one, band in bands.items()
        if not is_accuracy(one)
    ]
    every: list[MetricTest] = [*scores, *speeds]
    tests = [one for one in every if one.band is not None]
    reported = tuple(one.change(rule) for one in speeds if one.band is None)
    called_out = false_discoveries([one.p_value for one in reported]) if reported else ()
    found = replace(
        bare,
        reported=reported,
        warned=tuple(one.metric for one, out in zip(reported, called_out, strict=True) if out),
        only_in_a=tuple(metric for metric in a.metrics() if metric not in bands),
        only_in_b=tuple(metric for metric in b.metrics() if metric not in bands),
        warnings=tuple(_warnings(pair, rule)),
    )
    if not tests:
        without = "none of the metrics that both sides have is judged: they have no band"
        return replace(found, reason=without)
    judged = judge(JudgeInput("", "", pair.name, rule, tests=tests))
    return replace(found, verdict=judged.verdict, judgements=judged.judgements)


def _warnings(pair: Pair, rule: Rule) -> Iterator[str]:
    """What a reader should know of what was not compared, or not checked."""
    a, b = pair.a, pair.b
    if pair.machine_bound and len(a.runs) < FEWEST_REFERENCES:
        yield (
            f"A has {counted(len(a.runs), 'fresh start')} on a machine that is its own reference: "
            "too few to measure its noise, so that only large changes are decided"
        )
    for side, one in (("A", a), ("B", b)):
        for metric in one.partial():
            yield f"{metric} is missing from some runs of {side} and is not compared"
    of_the_load = {name for name in a.facts.keys() & b.facts.keys() if not name.startswith(PROGRAM)}
    if not (of_the_load or (a.fingerprint and b.fingerprint)):
        yield "nothing that both sides tell shows that they measured the same load"
    if len(b.runs) > rule.max_runs:
        used = counted(rule.max_runs, "fresh start")
        yield f"B has {len(b.runs)} fresh starts, of which the rule uses the first {used}"


def _noise(pair: Pair, learnt: Mapping[str, Mapping[str, RunNoise]]) -> Mapping[str, RunNoise]:
    """Metric → noise of one start.

    A machine that is its own reference is noisier than the priors of the metrics' families, which
    are those of GPU servers: it gets a weak prior, and its own spread decides.
    """
    if not pair.machine_bound:
        return learnt.get(pair.a.hardware, {})
    own = RunNoise(noises.OWN_SIGMA, dof=noises.OWN_DOF, widen=True)
    return dict.fromkeys(pair.metrics(), own)


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
        runs = [*a.runs, *b.runs]
        questions = [_questions(metric, one) for one in runs]
        if a.fingerprint and b.fingerprint:  # equal fingerprints asked the same questions
            told = next((one for one in questions if one), None)
            questions = [one or told for one in questions]
        found = [
            _score(metric, run.metrics[metric], asked)
            for run, asked in zip(runs, questions, strict=True)
        ]
        scores = (pooled_score(found[: len(a.runs)]), found[len(a.runs) :])
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
