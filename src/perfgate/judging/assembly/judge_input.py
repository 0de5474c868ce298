"""JudgeInput: all that one verdict rests on, and `judge`, which turns it into that verdict. Pure.

The run writes it down with each verdict, beside its `Provenance`: which starts and files its values
come from. Whoever recomputes the verdict assembles the input again from those, compares it field by
field with the recorded one, and calls the same function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from perfgate.baselines import Entry
from perfgate.baselines.stored_json import digest
from perfgate.baselines.waivers import Waiver, waive
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.rule import VERSION, ControlPolicy, Rule
from perfgate.core.verdict import Against, Judgement, Verdict, percent
from perfgate.judging.assembly.measured import gap
from perfgate.judging.rules.diagnostics import BROKEN_OUTPUT, OUTPUT_FORMAT
from perfgate.judging.rules.probe import (
    JudgedTest,
    MetricTest,
    PerformanceTest,
    ProbeJudgement,
    RunNoise,
    judge_probe,
    together,
)
from perfgate.runs.record import VerdictRecord
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Scenario

SCHEMA_VERSION = 1

# What only says something beside a verdict: it is in the record of the verdict itself.
_NOT_RECORDED = ("observed", "documented", "notes")


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
        rule_version: which rule turns it into a verdict (`perfgate.core.rule.VERSION`).
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
    rule_version: str = VERSION
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
            replace(one, file=Path(one.file.name))
            for one in waivers
            if one.scenario == self.scenario
        )
        return replace(self, waivers=own, today=today)

    def as_record(self) -> dict[str, Any]:
        """The input as plain values, with a digest in place of each evaluation's answers.

        Those are in the measurements' records and the kept baselines already.
        """
        recorded = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in _NOT_RECORDED
        }
        recorded["tests"] = [_recorded(one) for one in self.tests]
        recorded["anchor"] = [_recorded(one) for one in self.anchor]
        return dict(to_plain(recorded))


def _recorded(test: JudgedTest) -> dict[str, Any]:
    plain = {"kind": type(test).__name__, **to_plain(test)}
    if "answers" in plain:
        plain["answers"] = [
            [{"questions": len(one), "sha256": digest(one)} for one in side]
            for side in plain["answers"]
        ]
    return plain


def judge(given: JudgeInput) -> ProbeJudgement:
    """The verdict of a test. The only way to one.

    In this order: the numbers, or what facts alone decide; then waivers let regressions through;
    then broken answers void a speed, as no waiver lets the speed of broken answers count.

    Raises:
        InputError: values that cannot be judged; of observed metrics they become a note.
    """
    return _without_broken_answers(_with_waivers(_from_values(given), given), given.broken)


def _from_values(given: JudgeInput) -> ProbeJudgement:
    if given.verdict is not None:
        more = given.verdict == Verdict.INCONCLUSIVE
        return ProbeJudgement(given.verdict, reason=given.reason, needs_more_runs=more)
    judged = judge_probe(given.tests, given.rule, given.anchor, given.observed)
    return replace(
        judged,
        judgements=tuple(
            _with_gap(one, given.documented.get(one.metric)) if one.against == "baseline" else one
            for one in judged.judgements
        ),
        notes=(*given.notes, *judged.notes),
    )


def _with_gap(judgement: Judgement, documented: DocumentedValue | None) -> Judgement:
    """The judgement with a note on how far the build is from what is documented."""
    if documented is None or judgement.measured is None:
        return judgement
    value, unit = documented.value, lookup(judgement.metric).unit
    change = gap(judgement.metric, value, judgement.measured)
    if is_accuracy(judgement.metric):
        note = f"documented: {value:g}, now {100 * change:+.1f} points"
    else:
        note = f"documented: {value:.10g} {unit}, now {percent(change)}"
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
    decided = together(judgements)
    return replace(
        judged,
        verdict=decided.verdict,
        judgements=judgements,
        needs_more_runs=decided.needs_more_runs,
        controls_wanted=decided.controls_wanted,
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
        for one in of_probe.judgements:
            for fault in (BROKEN_OUTPUT, OUTPUT_FORMAT):
                if fault in one.notes and _has_lost(one) and not one.waiver:
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
        why_not: build → why it could not be started.
    """

    policy: ControlPolicy
    starts: Mapping[Against, tuple[int, ...]] = field(default_factory=dict)
    why_not: Mapping[Against, str] = field(default_factory=dict)


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
