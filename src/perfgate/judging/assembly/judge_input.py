"""JudgeInput: all that one verdict rests on, and `judge`, which turns it into that verdict. Pure.

Its tests are plain values: metric by metric, what is held against what, with which band and noise.
Here they meet the anchor's wider bands, and become one verdict; the rules are in `judging.rules`.

The run writes it down with each verdict, beside its `Provenance`: which starts and files its values
come from. Whoever recomputes the verdict assembles the input again from those, compares it field by
field with the recorded one, and calls the same function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from perfgate.baselines import Entry
from perfgate.baselines.stored_json import digest
from perfgate.baselines.waivers import Waiver, waive
from perfgate.core import measurement
from perfgate.core.errors import InputError, RunError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.verdict import (
    RULE_VERSION,
    Against,
    ControlPolicy,
    Judgement,
    Rule,
    Verdict,
    percent,
    verdict_of,
)
from perfgate.judging.assembly.measured import gap, settings_notes
from perfgate.judging.rules import scale
from perfgate.judging.rules.accuracy import AccuracyTest
from perfgate.judging.rules.claims import ClaimTest
from perfgate.judging.rules.diagnostics import BROKEN_OUTPUT, OUTPUT_FORMAT
from perfgate.judging.rules.documented import DocumentedTest
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import AbTest, InterleavedTest
from perfgate.judging.rules.performance import CurveTest, PerformanceTest
from perfgate.judging.rules.reasons import unjudged
from perfgate.runs.record import DocumentedMetric, Failure, VerdictRecord
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.rules.extra_options import describe_extra_options
from perfgate.scenarios.scenario import Scenario

SCHEMA_VERSION = 1

# What only says something beside a verdict: it is in the record of the verdict itself.
_NOT_RECORDED = ("observed", "documented", "notes")


@dataclass(frozen=True)
class NoTest:
    """A metric that cannot be judged, and why; `measured` is its last value."""

    metric: str
    band: float | None
    measured: float | None
    reason: str
    against: Against = "baseline"

    def judge(self) -> Judgement:
        """NO_BASELINE."""
        found = unjudged(self.metric, Verdict.NO_BASELINE, self.reason, band=self.band)
        return replace(found, measured=self.measured, against=self.against)


# Tests that are judged by rules of their own; all others by the session's.
OfOwnRule = NoTest | InterleavedTest | AbTest | ClaimTest
MetricTest = PerformanceTest | InterleavedTest | CurveTest | DocumentedTest | AccuracyTest | NoTest
JudgedTest = MetricTest | OfOwnRule


@dataclass(frozen=True)
class JudgeInput:
    """All that the verdict of a probe, a curve or a claim rests on.

    Attributes:
        scenario: id of its scenario.
        hardware: label of the scenario's hardware.
        probe: label of what is judged, within the scenario.
        rule: error rates, and the most fresh starts.
        tests: one per gating metric: new values, reference values, noise, band, controls.
        anchor: those against the anchor, with the bands of the nearest baseline.
        verdict: what facts alone decide, where there is nothing to test; None: the tests decide.
        reason: why they do.
        waivers: those for the scenario.
        today: the day on which they are applied.
        broken: why the speed of this build says nothing; empty: its answers are not broken.
        rule_version: which rule turns it into a verdict (`perfgate.core.verdict.RULE_VERSION`).
        schema_version: of this form.
        observed: metrics that are reported and do not gate.
        documented: metric → what the document says, which is told beside a measured baseline.
        notes: what else a person should know.
    """

    scenario: str
    hardware: str
    probe: str
    rule: Rule
    tests: Sequence[JudgedTest] = ()
    anchor: Sequence[MetricTest] = ()
    verdict: Verdict | None = None
    reason: str = ""
    waivers: tuple[Waiver, ...] = ()
    today: date = date.min
    broken: str = ""
    rule_version: str = RULE_VERSION
    schema_version: int = SCHEMA_VERSION
    observed: Sequence[PerformanceTest] = ()
    documented: Mapping[str, DocumentedValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, scenario: Scenario, probe: str, rule: Rule, **fields: Any) -> "JudgeInput":
        """The input for a test of a scenario."""
        return cls(scenario.id, scenario.hardware.label, probe, rule, **fields)

    def waived_by(self, waivers: Sequence[Waiver], today: date) -> "JudgeInput":
        """The same, with those of the waivers that are for its scenario."""
        own = tuple(
            replace(waiver, file=Path(waiver.file.name))
            for waiver in waivers
            if waiver.scenario == self.scenario
        )
        return replace(self, waivers=own, today=today)

    def as_record(self) -> dict[str, Any]:
        """The input as plain values, with a digest in place of each evaluation's answers.

        Those are in the measurements' records and the kept baselines already.
        """
        tests, anchor = ([_recorded(one) for one in side] for side in (self.tests, self.anchor))
        recorded = {**vars(self), "tests": tests, "anchor": anchor}
        return {name: to_plain(one) for name, one in recorded.items() if name not in _NOT_RECORDED}


def _recorded(test: JudgedTest) -> dict[str, Any]:
    plain = {"kind": type(test).__name__, **to_plain(test)}
    if "answers" in plain:
        plain["answers"] = [
            [{"questions": len(one), "sha256": digest(one)} for one in side]
            for side in plain["answers"]
        ]
    return plain


@dataclass(frozen=True)
class ProbeJudgement:
    """The verdict of one probe, and whether another fresh start may change it.

    Attributes:
        verdict: the worst of the judgements'.
        judgements: one per gating metric, those against the anchor after those against the
            baseline.
        reason: why there is no verdict from numbers, where there is none.
        needs_more_runs: whether another fresh start may change it.
        observed: how the metrics moved that are reported and do not gate.
        changed: which questions of accuracies are answered otherwise.
        notes: what else a person should know.
        controls_wanted: the builds of which a control is wanted before the next start of the build
            under test: that of the baseline, of the anchor, or both.
    """

    verdict: Verdict
    judgements: tuple[Judgement, ...] = ()
    reason: str = ""
    needs_more_runs: bool = False
    observed: tuple[measurement.Change, ...] = ()
    notes: tuple[str, ...] = ()
    controls_wanted: frozenset[Against] = frozenset()
    changed: tuple[measurement.ChangedQuestions, ...] = ()

    @property
    def suspected(self) -> frozenset[Against]:
        """What a loss against it is neither proved nor excluded yet."""
        undecided = (
            judgement.against for judgement in self.judgements if judgement.needs_more_runs
        )
        return frozenset(undecided if self.needs_more_runs else ())

    def of_outcome(self) -> dict[str, Any]:
        """Those of its fields that an `Outcome` has, too, by name."""
        names = {one.name for one in fields(Outcome)}
        return {name: value for name, value in vars(self).items() if name in names}


def judge(given: JudgeInput) -> ProbeJudgement:
    """The verdict of a test. The only way to one.

    In this order: the numbers, or what facts alone decide; then waivers let regressions through;
    then broken answers void a speed, as no waiver lets the speed of broken answers count.

    Raises:
        InputError: values that cannot be judged; of observed metrics they become a note.
    """
    return _without_broken_answers(_with_waivers(_from_values(given), given), given.broken)


def _from_values(given: JudgeInput) -> ProbeJudgement:
    """Every metric by itself, and the worst verdict.

    Each has the same error rates whatever stands beside it: a verdict depends neither on what else
    is selected nor on how CI splits it (statistics §3).
    """
    changes, notes = list[measurement.Change](), [*given.notes]
    for test in given.observed:
        try:
            changes.append(test.change(given.rule))
        except InputError as error:  # what does not gate spoils no verdict
            notes.append(f"{test.metric} is not compared: {error.problem}")
    fields: dict[str, Any] = {"observed": tuple(changes), "notes": tuple(notes)}
    if given.verdict is not None:
        more = given.verdict == Verdict.INCONCLUSIVE
        return ProbeJudgement(given.verdict, (), given.reason, more, **fields)
    judgements = [_with_gap(_judged(one, given.rule), given.documented) for one in given.tests]
    for one in given.anchor:
        judged = _judged(_with_anchor_band(one), given.rule)
        reason = judged.reason.replace("than the baseline by", "than the anchor by")
        reason = f"since the last release: {reason}"
        judgements.append(replace(judged, against="anchor", reason=reason))
    pairs = zip([*given.tests, *given.anchor], judgements, strict=True)
    changed = (
        one.changed(judged.runs_used, judged.against)
        for one, judged in pairs
        if isinstance(one, AccuracyTest)
    )
    return replace(combine(judgements), changed=tuple(filter(None, changed)), **fields)


def _judged(test: JudgedTest, rule: Rule) -> Judgement:
    return test.judge() if isinstance(test, OfOwnRule) else test.judge(rule)


def _with_anchor_band(test: MetricTest) -> MetricTest:
    band = lookup(test.metric).family.band if test.band is None else test.band
    return test if band is None else replace(test, band=scale.anchor_band(test.metric, band))


def combine(judgements: Sequence[Judgement]) -> ProbeJudgement:
    """The worst of `judgements`; those that are only listed decide nothing and come last."""
    counting = [one for one in judgements if not _is_only_listed(one)]
    listed = [judgement for judgement in judgements if _is_only_listed(judgement)]
    verdict = verdict_of(counting)
    # A proved regression needs no further starts, whatever the other metrics say.
    more = verdict != Verdict.REGRESSION and any(one.needs_more_runs for one in counting)
    wanted = frozenset(one.against for one in counting if more and one.needs_control)
    return ProbeJudgement(
        verdict, (*counting, *listed), needs_more_runs=more, controls_wanted=wanted
    )


def _is_only_listed(judgement: Judgement) -> bool:
    """Whether it is a metric that no document tells of, beside one that a document does."""
    return judgement.verdict == Verdict.NO_BASELINE and judgement.against == "documented"


def _with_gap(judgement: Judgement, documents: Mapping[str, DocumentedValue]) -> Judgement:
    """With a note on how far the build is from the document, beside a measured baseline."""
    documented, measured = documents.get(judgement.metric), judgement.measured
    if documented is None or measured is None or judgement.against != "baseline":
        return judgement
    value, unit = documented.value, lookup(judgement.metric).unit
    change = gap(judgement.metric, value, measured)
    note = f"documented: {value:.10g} {unit}, now {percent(change)}"
    if is_accuracy(judgement.metric):
        note = f"documented: {value:g}, now {100 * change:+.1f} points"
    return replace(judgement, notes=(*judgement.notes, note))


def _with_waivers(judged: ProbeJudgement, given: JudgeInput) -> ProbeJudgement:
    judgements = waive(
        judged.judgements,
        scenario=given.scenario,
        hardware=given.hardware,
        probe=given.probe,
        waivers=given.waivers,
        today=given.today,
    )
    if judgements == judged.judgements:
        return judged
    return replace(
        combine(judgements), observed=judged.observed, notes=judged.notes, changed=judged.changed
    )


def _without_broken_answers(judged: ProbeJudgement, broken: str) -> ProbeJudgement:
    """A speed proves nothing if what was produced so fast is not worth having."""
    if not broken or judged.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
        return judged
    note = f"{broken}: the speed of broken answers is no evidence that this build is as fast"
    return replace(judged, verdict=Verdict.INCONCLUSIVE, reason=note, notes=(*judged.notes, note))


def not_worth_measuring(broken: str) -> ProbeJudgement:
    """A speed that was not measured, since the answers were found to be broken before."""
    return _without_broken_answers(ProbeJudgement(Verdict.PASS), f"not measured, {broken}")


def broken_answers(judged: Mapping[str, ProbeJudgement]) -> str:
    """Why the speed of a build says nothing: its answers are broken; empty: they are not.

    A loss that a second evaluation is still to confirm is enough to spare the load on it.

    Args:
        judged: label → what is known of each probe of a scenario, in the order measured.
    """
    for label, of_probe in judged.items():
        for judgement in of_probe.judgements:
            for fault in (BROKEN_OUTPUT, OUTPUT_FORMAT):
                if fault in judgement.notes and _has_lost(judgement) and not judgement.waiver:
                    return f"{fault} in {label}"
    return ""


def _has_lost(judgement: Judgement) -> bool:
    """Whether it is a loss, proved or to be confirmed by another start."""
    if judgement.verdict == Verdict.REGRESSION:
        return True
    interval = judgement.interval
    return judgement.needs_more_runs and interval is not None and interval[1] < 0


@dataclass(frozen=True)
class Side:
    """Where the numbers of one side of a claim, or of an A/B, come from.

    Attributes:
        scenario: id of its scenario.
        probe: label of its probe.
        role: of the fresh starts that measured it in this run; empty: an accepted baseline is it.
        starts: numbers of those starts.
        baseline: that baseline's file, in the run's kept references; empty: none.
    """

    scenario: str
    probe: str
    role: str = ""
    starts: tuple[int, ...] = ()
    baseline: str = ""


@dataclass(frozen=True)
class ControlSources:
    """The controls that stood beside the build under test.

    Attributes:
        policy: as in `ControlStarts`.
        starts: build → numbers of its starts; a build that is missing could not be started.
        skip_reasons: build → why it could not be started.
    """

    policy: ControlPolicy
    starts: Mapping[Against, tuple[int, ...]] = field(default_factory=dict)
    skip_reasons: Mapping[Against, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """Where the values of a `JudgeInput` come from; files are those of the run's kept references.

    Attributes:
        role: of the starts of the build under test: ``new``, or ``claim``.
        starts: their numbers, in order; none that was disturbed.
        own_starts: numbers of the starts in which this machine measured its own reference.
        window: the baseline and the older ones on its level, newest first; empty: none.
        anchor: the last release's; empty: none beside the baseline.
        waivers: the file of waivers; empty: none is for the scenario.
        controls: None: no other build could stand beside it.
        points: of a curve: label of each point → where its values come from.
        sides: of a claim: the one that it speaks of, and the other where there is one; of an A/B: A
            and B.
        earlier: what this machine had measured of itself in earlier sessions; held by no file.
        documented: metric → what the document says of it; held by no file.
        noise: metric → noise of one fresh start, as learnt from history; held by no file.
    """

    role: str = "new"
    starts: tuple[int, ...] = ()
    own_starts: tuple[int, ...] = ()
    window: tuple[str, ...] = ()
    anchor: str = ""
    waivers: str = ""
    controls: ControlSources | None = None
    points: Mapping[str, "Provenance"] = field(default_factory=dict)
    sides: tuple[Side, ...] = ()
    earlier: Entry | None = None
    documented: Mapping[str, DocumentedValue] = field(default_factory=dict)
    noise: Mapping[str, RunNoise] = field(default_factory=dict)


def provenance_of(record: VerdictRecord) -> Provenance | None:
    """Where a verdict's record says that its values come from; None: it rests on none.

    Raises:
        InputError: it is damaged.
    """
    return None if record.provenance is None else from_plain(Provenance, record.provenance)


class Subject(Protocol):
    """What an outcome is of: a probe, or a claim about one."""

    @property
    def id(self) -> str:
        """Readable name, unique in the suite."""

    @property
    def label(self) -> str:
        """Short name, unique in the scenario."""

    @property
    def scenario(self) -> Scenario:
        """The scenario it belongs to."""


@dataclass(frozen=True)
class Outcome:
    """The end of one probe or claim.

    Attributes:
        probe: what was measured, or the claim about it.
        verdict: the worst of the gating metrics' verdicts, or ERROR.
        judgements: one per gating metric.
        measurements: one per fresh start of the build under test.
        compared_with: the baseline in words: which, and why that one.
        reason: why there is no verdict from numbers, where there is none.
        error: why there are no numbers, where there are none.
        folder: where the artifacts are.
        injected: faults put in on purpose, as KEY=VALUE.
        synthetic: whether a mock program made the numbers.
        notes: what else a person should know.
        observed: how the metrics moved that are reported and do not gate.
        changed: which questions of accuracies are answered otherwise than by the baseline's build.
        measured: every metric that was measured of it, judged or not.
        build: the build under test; None: it could not be asked.
        controls: the other builds that were started beside it on suspicion, or should have been.
        judge_input: all that the verdict rests on; None: it rests on no numbers, or was resumed.
        provenance: where those values come from; None: it is not kept.
        resumed_from: when a session before this one recorded it; empty: this one measured it.
    """

    probe: Subject
    verdict: Verdict
    judgements: tuple[Judgement, ...] = ()
    measurements: Sequence[measurement.Measurement] = ()
    compared_with: str = ""
    reason: str = ""
    error: RunError | None = None
    folder: Path | None = None
    injected: tuple[str, ...] = ()
    synthetic: bool = False
    notes: tuple[str, ...] = ()
    observed: tuple[measurement.Change, ...] = ()
    measured: tuple[measurement.MeasuredMetric, ...] = ()
    build: measurement.MeasuredBuild | None = None
    controls: tuple[measurement.MeasuredControl, ...] = ()
    resumed_from: str = ""
    changed: tuple[measurement.ChangedQuestions, ...] = ()
    judge_input: JudgeInput | None = None
    provenance: Provenance | None = None

    @property
    def extra_options(self) -> str:
        """What the engine is given beyond the vocabulary of settings; empty: nothing."""
        return describe_extra_options(self.probe.scenario.engine)

    @property
    def settings(self) -> tuple[str, ...]:
        """Which settings were not in force, or bounded, one line each; empty: none known."""
        return tuple(settings_notes(self.probe.scenario, self.measurements))

    def of_same_starts(self, subject: Subject, verdict: Verdict, **fields: Any) -> "Outcome":
        """The end of another test that rests on the starts of this one.

        Args:
            subject: that test.
            verdict: its own.
            fields: its other fields, by name.
        """
        return Outcome(
            subject,
            verdict,
            folder=self.folder,
            injected=self.injected,
            synthetic=self.synthetic,
            build=self.build,
            **fields,
        )

    def failing(self, subject: Subject) -> "Outcome":
        """What becomes of a claim or a curve that needs this failed probe: its cause."""
        return self.of_same_starts(subject, self.verdict, error=self.error, controls=self.controls)

    def as_record(
        self, test: str, rerun: str = "", documented: Sequence[DocumentedMetric] = ()
    ) -> VerdictRecord:
        """The record of the outcome.

        Args:
            test: pytest's id of the test.
            rerun: the command that runs it again.
            documented: what the scenario's document says.
        """
        error = self.error
        names = VerdictRecord.__struct_fields__
        as_they_are = {name: one for name, one in vars(self).items() if name in names}
        others: dict[str, Any] = {
            "name": self.probe.id,
            "scenario": self.probe.scenario.id,
            "probe": self.probe.label,
            "starts": len(self.measurements),
            "error": error
            and Failure(error.failure, error.message, tuple(error.evidence), error.hint),
            "changed_questions": self.changed,
            "settings": self.settings,
            "extra_options": self.extra_options,
            "folder": self.folder and str(self.folder),
            "provenance": self.provenance and to_plain(self.provenance),
            "judge_input": self.judge_input and self.judge_input.as_record(),
            "resumed_from": "",
        }
        return VerdictRecord(
            test=test, rerun=rerun, documented=tuple(documented), **{**as_they_are, **others}
        )
