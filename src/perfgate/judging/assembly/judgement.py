"""Probe input: a probe's measurements and what they are compared with, as a `JudgeInput`.

Pure; `perfgate.judging.assembly.judge_input.judge` gives the verdict. Per gating metric: the
measured baseline or else what is documented, the noise, the band, the measurements, and beside them
the anchor, so that a loss in many small steps shows. Measured and documented are never mixed. Of an
A/B: the measurements of two builds, without any baseline; REGRESSION: B is worse than A.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import Path

from perfgate.baselines import Entry
from perfgate.baselines.baseline import BuildSource
from perfgate.clients import blocks
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Against, ControlPolicy, Rule, Verdict
from perfgate.judging.assembly.bands import band_of, noise_of, resolve_band, sigma_of
from perfgate.judging.assembly.judge_input import ControlSources, JudgeInput, MetricTest, NoTest
from perfgate.judging.assembly.measured import (
    answers_of,
    measured_score,
    prompts_differ_from_document,
    unlike_baseline,
)
from perfgate.judging.rules.accuracy import AccuracyTest, Score, documented_score, pooled_score
from perfgate.judging.rules.documented import LEAST_TOLERANCE, DocumentedTest
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import AB_RULE, AbTest, InterleavedTest
from perfgate.judging.rules.performance import PerformanceTest
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario

# An accuracy is asked no oftener than against a baseline.
_ACCURACY_RULE = Rule(max_runs=3)


@dataclass(frozen=True)
class Reference:
    """What one probe is compared with.

    Attributes:
        entry: a baseline's part for it; None: there is none.
        documented: what is documented for it: metric → value. It is judged where there is no entry,
            metrics without a documented value staying unjudged; beside an entry it is only told.
        anchor: the last release's part for it, where that is another one than `entry`.
        noise: metric → noise of one fresh start, as far as the hardware's history is known.
        notes: what a person should know of it.
        is_interleaved: whether the starts of `entry` took turns with those of the build under test.
        earlier: the references that this machine measured in earlier sessions, where it did.
        description: the baseline or document, and why that one; the anchor, where there is one.
        source: how the baseline's build is started again; None: that is not known.
        window: files of the baselines that `entry` is made of, newest first.
        anchor_file: that of `anchor`.
    """

    entry: Entry | None = None
    documented: Mapping[str, DocumentedValue] = field(default_factory=dict)
    anchor: Entry | None = None
    noise: Mapping[str, RunNoise] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_interleaved: bool = False
    earlier: Entry | None = None
    description: str = ""
    source: BuildSource | None = None
    window: tuple[Path, ...] = ()
    anchor_file: Path | None = None


@dataclass(frozen=True)
class ControlStarts:
    """The controls of one probe.

    Attributes:
        policy: whether controls are made, and needed (`gate.control`).
        measured: which build, that of the baseline or of the anchor → number of the start → what it
            gave in this session; a build that is missing here cannot be started.
        skip_reasons: which build → why it cannot be started, in words.
    """

    policy: ControlPolicy = "auto"
    measured: Mapping[Against, Mapping[int, Measurement]] = field(default_factory=dict)
    skip_reasons: Mapping[Against, str] = field(default_factory=dict)

    def values(self, against: Against, metric: str) -> list[float] | None:
        """The metric's values, one per control that has it; None: that build cannot be started."""
        if self.policy == "none" or against not in self.measured:
            return None
        starts = self.measured[against].values()
        return [start.metrics[metric] for start in starts if metric in start.metrics]

    def sources(self) -> ControlSources:
        """Which starts these are."""
        starts = {against: tuple(numbers) for against, numbers in self.measured.items()}
        return ControlSources(self.policy, starts, dict(self.skip_reasons))


@dataclass(frozen=True)
class ProbeEvidence:
    """What a session has of one probe: measured in it, or read again from its files.

    Attributes:
        probe: what was measured.
        reference: what it is compared with.
        fingerprint: the facts of the measurements that must equal the baseline's.
        measured: number of the fresh start → what it gave; none that was disturbed.
        controls: what the baseline's and the anchor's builds gave; default: neither can be started.
    """

    probe: Probe
    reference: Reference
    fingerprint: Mapping[str, str]
    measured: Mapping[int, Measurement]
    controls: ControlStarts = field(default_factory=ControlStarts)

    @property
    def scenario(self) -> Scenario:
        """The probe's scenario."""
        return self.probe.scenario

    @property
    def measurements(self) -> list[Measurement]:
        """One per fresh start, in order."""
        return list(self.measured.values())

    def values(self, metric: str) -> list[float]:
        """A metric that all of them have, one value per fresh start."""
        return [measurement.metrics[metric] for measurement in self.measurements]


def probe_input(evidence: ProbeEvidence, rule: Rule) -> JudgeInput:
    """All that the verdict of a probe rests on, but for waivers and broken answers.

    Args:
        evidence: of the probe.
        rule: error rates and the most fresh starts.

    Raises:
        InputError: a baseline and no gating metric, or a score of an unknown number of questions.
        RunError: a measurement lacks a gating metric (class ``no_metrics``).
    """
    probe, reference, measurements = evidence.probe, evidence.reference, evidence.measurements
    metrics, entry = probe.gating_metrics(), reference.entry
    given = JudgeInput.of(probe.scenario, probe.label, rule)
    _require_metrics(metrics, measurements)
    if entry is None and not reference.documented.keys() & set(metrics):
        why = "there is no baseline for this probe yet"
        return replace(given, verdict=Verdict.NO_BASELINE, reason=why)
    other_prompts = prompts_differ_from_document(measurements)
    different = [other_prompts] if other_prompts else []
    if entry is not None:
        other_file = unlike_baseline(probe.scenario, entry, measurements)
        different = [*entry.differences(evidence.fingerprint), *other_file]
    if different:
        return replace(given, verdict=Verdict.NOT_COMPARABLE, reason="; ".join(different))
    _require_gate(probe)
    anchor, notes = reference.anchor if entry else None, [*reference.notes]
    if anchor and (unlike := anchor.differences(evidence.fingerprint)):
        anchor = None
        notes.append(f"not compared with the anchor: {'; '.join(unlike)}")
    if other_prompts and reference.documented:
        notes.append("not compared with the document, which measured other prompts")
    documented = {} if other_prompts else reference.documented
    notes += blocks.notes(measurements)
    given = replace(given, documented=documented, notes=tuple(notes))
    if entry is None:
        tests = [_documented(one, documented.get(one), evidence) for one in metrics]
        return replace(given, tests=tests)
    return replace(
        given,
        tests=[_measured(metric, entry, evidence, "baseline") for metric in metrics],
        anchor=[_measured(one, anchor, evidence, "anchor") for one in metrics if anchor.values(one)]
        if anchor
        else (),
        observed=[
            _performance_test(one, entry, evidence)
            for one in _reported(probe, measurements)
            if entry.values(one)
        ],
    )


def _require_gate(probe: Probe) -> None:
    if not probe.gating_metrics():
        raise InputError(
            "nothing to judge",
            field="gate.metrics",
            found=f"no metric that {probe.id} gives",
            hint="name one of its metrics in the scenario's gate, or drop the probe",
        )


def _reported(probe: Probe, measurements: Sequence[Measurement]) -> list[str]:
    """The speeds that every start of a load has and that do not gate."""
    if not probe.is_load:
        return []
    common = set.intersection(*(set(measurement.metrics) for measurement in measurements))
    return sorted(one for one in common - {*probe.gating_metrics()} if not is_accuracy(one))


def _require_metrics(
    metrics: Sequence[str], measurements: Sequence[Measurement], whose: str = ""
) -> None:
    """Check that every measurement has every metric; `whose` follows the number of its start."""
    for start, measurement in enumerate(measurements, start=1):
        missing = [metric for metric in metrics if metric not in measurement.metrics]
        if missing:
            raise RunError(
                "no_metrics",
                f"the result of fresh start {start}{whose} lacks {', '.join(missing)}, which gates",
            )


def _documented(
    metric: str, value: DocumentedValue | None, evidence: ProbeEvidence
) -> DocumentedTest | AccuracyTest | NoTest:
    """One metric against its documented value, None: nothing is documented for it."""
    band, measurements = resolve_band(metric, evidence.scenario, value), evidence.measurements
    now = measurements[-1].metrics
    if value is None:
        why = "not judged: nothing is documented for it, and there is no baseline yet"
        return NoTest(metric, band.loss, now.get(metric), why, "documented")
    if not is_accuracy(metric):
        tolerance, sigma = band.declared or LEAST_TOLERANCE, sigma_of(metric, evidence.scenario)
        return DocumentedTest(metric, tolerance, value.value, evidence.values(metric), sigma)
    scores = [measured_score(metric, measurement) for measurement in measurements]
    document = documented_score(value.value, value.stderr)
    return AccuracyTest(
        metric,
        band.declared,
        ((), ()),
        (document, scores),
        ({metric: value.value}, now),
        against="documented",
    )


def _measured(metric: str, entry: Entry, evidence: ProbeEvidence, against: Against) -> MetricTest:
    """A metric against a stored entry; a speed with the controls of the build of that entry."""
    controls, values = evidence.controls, entry.values(metric)
    if not is_accuracy(metric) and values:
        if evidence.reference.is_interleaved:
            return _interleaved(metric, entry, evidence)
        return replace(
            _performance_test(metric, entry, evidence),
            controls=controls.values(against, metric),
            policy=controls.policy,
            why_no_control=controls.skip_reasons.get(against, ""),
        )
    measurements, band = evidence.measurements, band_of(metric, evidence.scenario)
    before, last = entry.runs[0].metrics, measurements[-1].metrics
    answers = (entry.answers(metric), answers_of(metric, measurements))
    paired = bool(answers[0]) and all(answers[1])
    if not is_accuracy(metric) or not (paired or values):
        return NoTest(metric, band, last.get(metric), f"the baseline has no {metric}")
    scores = None
    if not paired:  # equal fingerprints asked equally many questions
        now = [measured_score(metric, measurement) for measurement in measurements]
        scores = (pooled_score([Score(value, now[0].questions) for value in values]), now)
    return AccuracyTest(metric, band, answers, scores, (before, last))


def measures_itself(probe: Probe) -> bool:
    """Whether the machine that measures `probe` is its own reference."""
    return probe.is_load and probe.scenario.gate.reference == "self"


def is_interleaved(scenario: Scenario) -> bool:
    """Whether references that a session measures itself take turns with the build under test."""
    return scenario.gate.reference == "self" and scenario.gate.noise == "measured"


def _interleaved(metric: str, entry: Entry, evidence: ProbeEvidence) -> InterleavedTest:
    """A speed against references that took turns with the build under test (statistics §9)."""
    earlier, sessions = evidence.reference.earlier, dict[str, list[float]]()
    for run in earlier.runs if earlier else ():
        if metric in run.metrics:
            sessions.setdefault(run.run, []).append(run.metrics[metric])
    values = entry.values(metric), evidence.values(metric), list(sessions.values())
    band, most = band_of(metric, evidence.scenario), evidence.scenario.gate.max_starts
    in_blocks = all(blocks.FACT in measurement.facts for measurement in evidence.measurements)
    return InterleavedTest(metric, band, *values, most, in_blocks)


def _performance_test(metric: str, entry: Entry, evidence: ProbeEvidence) -> PerformanceTest:
    """A performance metric of a scenario, with its band and the noise that the gate believes in."""
    scenario, values = evidence.scenario, (entry.values(metric), evidence.values(metric))
    band, noise = band_of(metric, scenario), noise_of(metric, scenario, evidence.reference.noise)
    return PerformanceTest(metric, band, *values, noise, entry.sessions(metric))


def ab_input(
    probe: Probe, a: Sequence[Measurement], b: Sequence[Measurement], noise: Mapping[str, RunNoise]
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
    scenario = probe.scenario
    if probe.is_smoke:
        return smoke_input(probe, a, b)
    _require_gate(probe)
    _require_metrics(probe.gating_metrics(), a, " of A")
    _require_metrics(probe.gating_metrics(), b, " of B")

    def values(metric: str) -> tuple[list[float], list[float]]:
        return [one.metrics[metric] for one in a], [one.metrics[metric] for one in b]

    def accuracy(metric: str) -> AccuracyTest:
        """Answer by answer where both builds' are known, else by their scores."""
        answers, scores = (answers_of(metric, a), answers_of(metric, b)), None
        if not all(map(all, answers)):
            theirs, ours = ([measured_score(metric, one) for one in side] for side in (a, b))
            scores = (pooled_score(theirs), ours)
        measured = (a[-1].metrics, b[-1].metrics)
        band = band_of(metric, scenario)
        return AccuracyTest(metric, band, answers, scores, measured, against="ab")

    def observed(metric: str) -> PerformanceTest:
        """Both builds share their session's noise."""
        known = noise_of(metric, scenario, noise)
        sigma = lookup(metric).family.sigma if known.sigma is None else known.sigma
        before, now = (side[: AB_RULE.most] for side in values(metric))
        within = RunNoise(sigma * sqrt(1 - known.between), between=0.0)
        return PerformanceTest(metric, None, before, now, within)

    def speed(metric: str) -> AbTest:
        in_blocks = all(blocks.FACT in one.facts for one in (*a, *b))
        known = noise_of(metric, scenario, noise)
        return AbTest(metric, *values(metric), band_of(metric, scenario), known, in_blocks)

    tests = [accuracy(one) if is_accuracy(one) else speed(one) for one in probe.gating_metrics()]
    reported = tuple(map(observed, _reported(probe, [*a, *b])))
    given = JudgeInput.of(scenario, probe.label, _ACCURACY_RULE, tests=tests, observed=reported)
    return replace(given, notes=tuple(blocks.notes(b)))


def smoke_input(probe: Probe, *sides: Sequence[Measurement]) -> JudgeInput:
    """All that the verdict of a smoke test rests on: that it answered.

    Args:
        probe: the test.
        sides: what it gave; in an A/B what A gave, and B.
    """
    said = [_answered(given[-1].facts) for given in sides]
    reason = said[0] if len(said) == 1 else f"A: {said[0]}; B: {said[1]}"
    return JudgeInput.of(probe.scenario, probe.label, Rule(), verdict=Verdict.PASS, reason=reason)


def _answered(facts: Mapping[str, Json]) -> str:
    """What a smoke test saw."""
    said = f"it answered: {facts.get('first_answer') or facts.get('answers', 'every prompt')}"
    other = facts.get("not_as_documented")
    if not isinstance(other, list) or not other:
        return said
    prompts = ", ".join(repr(prompt) for prompt in other)
    return f"{said}; not the text that the document gives for another release: {prompts}"
