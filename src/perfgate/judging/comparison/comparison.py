"""Comparison: the gate's verdicts for two things that were measured, A the reference, B the new
one.

`perfgate.judging.comparison.sides` reads them, and `perfgate.reports.comparison` shows the result.
Here only what is stored of the noise of A's hardware is read.
"""

from collections import defaultdict
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
from perfgate.judging.assembly.learnt_noise import noises_on
from perfgate.judging.comparison.comparability import PROGRAM, Fact, differences, fingerprint_facts
from perfgate.judging.comparison.sides import Measured, Side
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules.accuracy import Score, pooled_score
from perfgate.judging.rules.diagnostics import false_discoveries
from perfgate.judging.rules.probe import (
    AccuracyTest,
    JudgedTest,
    PerformanceTest,
    RunNoise,
    observed_changes,
)

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


Pair = tuple[Measured, Measured]  # a probe of A, and that of B which it is compared with


def compare(a: Side, b: Side, options: ComparisonOptions) -> Comparison:
    """Judge the new side B against the reference A, probe by probe.

    Raises:
        InputError: a run is on both sides, a name that is asked for is not there, or values that
            cannot be judged.
    """
    a, b = _chosen(a, options.probes), _chosen(b, options.probes)
    _require_two(a, b)
    of_a, of_b = _named(a, b, options.across)
    pairs = {name: (probe, of_b[name]) for name, probe in of_a.items() if name in of_b}
    _require_known(options, pairs.values())
    return Comparison(
        a,
        b,
        tuple(_compared(name, *pair, options) for name, pair in pairs.items()),
        tuple(name for name in of_a if name not in of_b),
        tuple(name for name in of_b if name not in of_a),
    )


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
    of_a, of_b = ({run for probe in side.probes for run in probe.identities} for side in (a, b))
    shared = sorted(of_a & of_b)
    if shared or a.path.resolve() == b.path.resolve():
        raise InputError(
            "both sides hold the same run, which proves nothing",
            file=b.path,
            found=shared[0] if shared else str(a.path),
            expected="two builds, each measured on its own",
            hint="name the run of the other build",
        )


def _named(
    a: Side, b: Side, across: Collection[str]
) -> tuple[dict[str, Measured], dict[str, Measured]]:
    """The probes of A and of B by the names under which they are compared."""
    if "files" not in (a.kind, b.kind):
        return _by_name(a, across), _by_name(b, across)
    for side in (a, b):
        if len(side.probes) != 1:
            raise InputError(
                "results of another tool can be compared with one probe only",
                file=side.path,
                field="--probe",
                found=", ".join(probe.name for probe in side.probes),
                expected="the name of one of them",
            )
    name = (b if a.kind == "files" else a).probes[0].name
    return {name: a.probes[0]}, {name: b.probes[0]}


def _by_name(side: Side, across: Collection[str]) -> dict[str, Measured]:
    if SCENARIO not in across:
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


def _shared(a: Measured, b: Measured) -> list[str]:
    """The metrics that every run of both has, sorted."""
    return sorted({*a.metrics()} & {*b.metrics()})


def _facts(a: Measured, b: Measured) -> tuple[Mapping[str, Fact], Mapping[str, Fact]]:
    """What must agree: fingerprints if both have one, else what results tell of the load."""
    if a.fingerprint is None or b.fingerprint is None:
        return a.facts, b.facts
    names = common_facts(a.fingerprint, b.fingerprint)
    return fingerprint_facts(a.fingerprint, names), fingerprint_facts(b.fingerprint, names)


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
    result = ProbeComparison(name, starts=(len(a.runs), len(b.runs)))
    failures = [
        f"{side} failed: {probe.failure}" for side, probe in (("A", a), ("B", b)) if probe.failure
    ]
    if failures:
        return replace(result, verdict=Verdict.ERROR, reason="; ".join(failures))
    matter, meant = differences(*_facts(a, b), options.across)
    result = replace(result, reason="; ".join(matter), across=tuple(meant))
    if matter:
        return result
    bands = {metric: _band(metric, options) for metric in _shared(a, b)}
    noise, rule = _noise(a, b), Rule()
    tests: list[JudgedTest] = [
        _accuracy_test(metric, band, a, b)
        for metric, band in bands.items()
        if is_accuracy(metric) and band is not None
    ]
    speeds = [
        PerformanceTest(metric, band, a.values(metric), b.values(metric), noise[metric], a.sessions)
        for metric, band in bands.items()
        if not is_accuracy(metric)
    ]
    reported, notes = observed_changes((test for test in speeds if test.band is None), rule)
    called_out = false_discoveries([change.p_value for change in reported]) if reported else ()
    result = replace(
        result,
        reported=reported,
        warned=tuple(
            change.metric for change, out in zip(reported, called_out, strict=True) if out
        ),
        only_in_a=tuple(metric for metric in a.metrics() if metric not in bands),
        only_in_b=tuple(metric for metric in b.metrics() if metric not in bands),
        warnings=(*_warnings(a, b, rule), *notes),
    )
    tests += [test for test in speeds if test.band is not None]
    if not tests:
        without = "none of the metrics that both sides have is judged: they have no band"
        return replace(result, reason=without)
    judged = judge(JudgeInput("", "", name, rule, tests=tests))
    return replace(result, verdict=judged.verdict, judgements=judged.judgements)


def _band(metric: str, options: ComparisonOptions) -> float | None:
    """The loss that counts; None: the metric is only reported."""
    if options.metrics and metric not in options.metrics:
        return None
    return options.bands.get(metric, lookup(metric).family.band)


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
    """Paired where both sides have the answers; else by the scores of each side."""
    was, now = ([run.answers.get(metric, {}) for run in side.runs] for side in (a, b))
    scores = None
    if not (all(was) and all(now)):
        runs = [*a.runs, *b.runs]
        questions = [_questions(metric, run) for run in runs]
        # Equal fingerprints asked the same questions.
        of_all = next(filter(None, questions), None) if a.fingerprint and b.fingerprint else None
        every = [
            _score(metric, run, number or of_all)
            for run, number in zip(runs, questions, strict=True)
        ]
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


def _score(metric: str, run: Measurement, questions: float | None) -> Score:
    if questions is None:
        raise InputError(
            f"the number of questions behind {metric} is unknown",
            found=f"only the score {run.metrics[metric]:g}",
            expected="answers, the number of questions, or a standard error above 0",
            hint="compare lm_eval's results_*.json, which counts its questions",
        )
    return Score(run.metrics[metric], questions)
