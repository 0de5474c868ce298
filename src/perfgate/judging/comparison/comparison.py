"""Comparison: the gate's verdicts for two things that were measured, A the reference, B the new
one.

`perfgate.judging.comparison.sides` reads them, and `perfgate.reports.comparison` shows the result.
Here only what is stored of the noise of A's hardware is read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from perfgate.baselines.baseline import common_facts
from perfgate.core.errors import InputError
from perfgate.core.measurement import Change, Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import FEWEST_REFERENCES, Judgement, Rule, Verdict, counted
from perfgate.judging.assembly.bands import noises_on
from perfgate.judging.assembly.judge_input import JudgedTest, JudgeInput, judge
from perfgate.judging.comparison.sides import PROGRAM, Fact, Kind, Measured, Side, differences
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules.accuracy import AccuracyTest, Score, pooled_score
from perfgate.judging.rules.diagnostics import false_discoveries
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.performance import PerformanceTest

SCENARIO = "scenario"  # named as meant to differ, probes are matched by their labels alone


@dataclass(frozen=True)
class ComparisonOptions:
    """How to compare.

    Attributes:
        bands: metric → band, where not the metric's own.
        across: facts that are meant to differ.
        probes: names or labels of the probes to compare; empty: all.
        metrics: metrics that are judged; the others are then reported. Empty: all with a band.
    """

    bands: Mapping[str, float] = field(default_factory=dict)
    across: frozenset[str] = frozenset()
    probes: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


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
        """Whether mock programs made numbers of either side."""
        return self.a.synthetic or self.b.synthetic

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of the sides."""
        found = []
        for name, side in (("A", self.a), ("B", self.b)):
            found += [f"{name}: {text}" for text in side.warnings]
            found += [f"{name}: injected: {', '.join(side.injected)}"] if side.injected else []
        return tuple(found)


Pair = tuple[Measured, Measured]  # a probe of A, and that of B which it is compared with


def compare(a: Side, b: Side, options: ComparisonOptions) -> Comparison:
    """Judge the new side B against the reference A, probe by probe.

    Raises:
        InputError: a run is on both sides, a name that is asked for is not there, or values that
            cannot be judged.
    """
    of_a, of_b = _named(a, b.kind, options), _named(b, a.kind, options)
    _require_two(a, b, of_a.values(), of_b.values())
    pairs = {name: (probe, of_b[name]) for name, probe in of_a.items() if name in of_b}
    _require_known(options, pairs.values())
    return Comparison(
        a,
        b,
        tuple(_compared(name, *pair, options) for name, pair in pairs.items()),
        tuple(name for name in of_a if name not in of_b),
        tuple(name for name in of_b if name not in of_a),
    )


def _named(side: Side, other: Kind, options: ComparisonOptions) -> dict[str, Measured]:
    """The chosen probes, by the names that they are matched by.

    Results of other tools have but one, without a name; so has what they are compared with.
    """
    probes, chosen = side.probes, set(options.probes)
    if chosen and side.kind != "files":
        for name in options.probes:
            if not any(name in (probe.name, probe.label) for probe in probes):
                raise InputError(
                    f"no such probe in {side.path}",
                    field="--probe",
                    found=name,
                    expected="one of " + ", ".join(probe.name for probe in probes),
                )
        probes = tuple(probe for probe in probes if {probe.name, probe.label} & chosen)
    if "files" in (side.kind, other):
        if len(probes) != 1:
            raise InputError(
                "results of another tool can be compared with one probe only",
                file=side.path,
                field="--probe",
                found=", ".join(probe.name for probe in probes),
                expected="the name of one of them",
            )
        return {"": probes[0]}
    if SCENARIO not in options.across:
        return {probe.name: probe for probe in probes}
    scenarios = sorted({probe.scenario for probe in probes})
    if len(scenarios) > 1:
        raise InputError(
            "probes of several scenarios cannot be matched by their labels",
            file=side.path,
            field="--across",
            found=", ".join(scenarios),
            expected=f"one scenario on each side, as {SCENARIO} is meant to differ",
            hint="choose the probes of one scenario with --probe",
        )
    return {probe.label: probe for probe in probes}


def _require_two(a: Side, b: Side, of_a: Iterable[Measured], of_b: Iterable[Measured]) -> None:
    """Refuse a run that is on both sides: it would pass whatever the build is like."""
    runs = ({run for probe in probes for run in probe.identities} for probes in (of_a, of_b))
    shared = sorted(set.intersection(*runs))
    if shared or a.path.resolve() == b.path.resolve():
        raise InputError(
            "both sides hold the same run, which proves nothing",
            file=b.path,
            found=shared[0] if shared else str(a.path),
            expected="two builds, each measured on its own",
            hint="name the run of the other build",
        )


def _shared(a: Measured, b: Measured) -> list[str]:
    """The metrics that every run of both has, sorted."""
    return sorted({*a.metrics()} & {*b.metrics()})


def _facts(a: Measured, b: Measured) -> tuple[Mapping[str, Fact], Mapping[str, Fact]]:
    """What must agree: fingerprints if both have one, else what results tell of the load."""
    if a.fingerprint is None or b.fingerprint is None:
        return a.facts, b.facts
    names = common_facts(a.fingerprint, b.fingerprint)
    # A fact that one side lacks differs from any value.
    of_a, of_b = (
        {name: Fact(facts.get(name, "unknown")) for name in names}
        for facts in (a.fingerprint, b.fingerprint)
    )
    return of_a, of_b


def _require_known(options: ComparisonOptions, pairs: Collection[Pair]) -> None:
    """Refuse names of facts and metrics that nothing here has: most likely they are misspelt."""
    facts = {SCENARIO}.union(*(facts for pair in pairs for facts in _facts(*pair)))
    unknown = sorted(options.across - facts)
    if unknown and pairs:
        raise InputError(
            "no such fact",
            field="--across",
            found=", ".join(unknown),
            expected="facts of both sides: " + ", ".join(sorted(facts)),
        )
    shared = sorted({name for pair in pairs for name in _shared(*pair)})
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


def _compared(name: str, a: Measured, b: Measured, options: ComparisonOptions) -> ProbeComparison:
    """Judge every metric that both sides have of one probe.

    Raises:
        InputError: values that cannot be judged, or a score of an unknown number of questions.
    """
    name = name or (a if a.scenario else b).name
    result = ProbeComparison(name, starts=(len(a.runs), len(b.runs)))
    sides = (("A", a), ("B", b))
    if failures := [f"{side} failed: {one.failure}" for side, one in sides if one.failure]:
        return replace(result, verdict=Verdict.ERROR, reason="; ".join(failures))
    matter, meant = differences(*_facts(a, b), options.across)
    result = replace(result, reason="; ".join(matter), across=tuple(meant))
    if matter:
        return result
    shared, noise, rule = _shared(a, b), _noise(a, b), Rule()
    tests, speeds, unjudged = list[JudgedTest](), list[JudgedTest](), list[PerformanceTest]()
    for metric in shared:
        band = options.bands.get(metric, lookup(metric).family.band)
        if options.metrics and metric not in options.metrics:
            band = None  # it is only reported
        if is_accuracy(metric):
            tests += [] if band is None else [_accuracy_test(metric, band, a, b)]
            continue
        values = a.values(metric), b.values(metric)
        speed = PerformanceTest(metric, band, *values, noise[metric], a.sessions)
        (unjudged if band is None else speeds).append(speed)
    given = JudgeInput("", "", name, rule, [*tests, *speeds], observed=unjudged)
    if not given.tests:
        without = "none of the metrics that both sides have is judged: they have no band"
        given = replace(given, verdict=result.verdict, reason=without)
    judged = judge(given)
    reported = judged.observed
    called_out = false_discoveries([change.p_value for change in reported])
    return replace(
        result,
        verdict=judged.verdict,
        reason=judged.reason,
        judgements=judged.judgements,
        reported=reported,
        warned=tuple(one.metric for one, out in zip(reported, called_out, strict=True) if out),
        only_in_a=tuple(metric for metric in a.metrics() if metric not in shared),
        only_in_b=tuple(metric for metric in b.metrics() if metric not in shared),
        warnings=(*_warnings(a, b, rule), *judged.notes),
    )


def _noise(a: Measured, b: Measured) -> Mapping[str, RunNoise]:
    """Metric → noise of one start, as far as the history of A's hardware is known.

    A machine that is its own reference is noisier than the priors of the metrics' families, which
    are those of GPU servers: it gets a weak prior, and its own spread decides.
    """
    known: dict[str, RunNoise] = defaultdict(RunNoise)
    if a.machine_bound or b.machine_bound:
        own = RunNoise(noises.OWN_SIGMA, dof=noises.OWN_DOF, widen=True)
        return known | dict.fromkeys(a.metrics(), own)
    return known | (noises_on(a.hardware, a.metrics()) if a.hardware else {})


def _warnings(a: Measured, b: Measured, rule: Rule) -> Iterator[str]:
    """What a reader should know of what was not compared, or not checked."""
    if (a.machine_bound or b.machine_bound) and len(a.runs) < FEWEST_REFERENCES:
        yield (
            f"A has {counted(len(a.runs), 'fresh start')} on a machine that is its own reference: "
            "too few to measure its noise, so that only large changes are decided"
        )
    for side, probe in (("A", a), ("B", b)):
        for metric in probe.partial():
            yield f"{metric} is missing from some runs of {side} and is not compared"
    of_the_load = {name for name in a.facts.keys() & b.facts.keys() if not name.startswith(PROGRAM)}
    if not (of_the_load or (a.fingerprint and b.fingerprint)):
        yield "nothing that both sides tell shows that they measured the same load"
    if len(b.runs) > rule.max_runs:
        used = counted(rule.max_runs, "fresh start")
        yield f"B has {len(b.runs)} fresh starts, of which the rule uses the first {used}"


def _accuracy_test(metric: str, band: float, a: Measured, b: Measured) -> AccuracyTest:
    """Paired where both sides have the answers; else by the scores of each side.

    Raises:
        InputError: the number of questions behind a score is unknown.
    """
    was, now = ([run.answers.get(metric, {}) for run in side.runs] for side in (a, b))
    scores = None
    if not (all(was) and all(now)):
        every, runs = [], [*a.runs, *b.runs]
        questions = [_questions(metric, run) for run in runs]
        # Equal fingerprints asked the same questions.
        of_all = next(filter(None, questions), None) if a.fingerprint and b.fingerprint else None
        for run, own in zip(runs, questions, strict=True):
            if (number := own or of_all) is None:
                raise InputError(
                    f"the number of questions behind {metric} is unknown",
                    found=f"only the score {run.metrics[metric]:g}",
                    expected="answers, the number of questions, or a standard error above 0",
                    hint="compare lm_eval's results_*.json, which counts its questions",
                )
            every.append(Score(run.metrics[metric], number))
        scores = (pooled_score(every[: len(a.runs)]), every[len(a.runs) :])
    return AccuracyTest(metric, band, (was, now), scores, (a.runs[0].metrics, b.runs[0].metrics))


def _questions(metric: str, run: Measurement) -> float | None:
    """The questions behind a score: counted, told, or as many as its standard error says."""
    value, answers = run.metrics[metric], run.answers.get(metric)
    if answers:
        return len(answers)
    _, task, name, filter_name = metric.split(":")
    for key in (f"questions:{task}", "questions"):
        number = run.facts.get(key)
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return number
    error = run.facts.get(f"stderr:{task}:{name}:{filter_name}")
    if isinstance(error, int | float) and error > 0 and 0 < value < 1:
        # lm_eval's standard error is that of n - 1, and printed with four digits.
        return value * (1 - value) / error**2 + 1
    return None
