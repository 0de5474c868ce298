"""Outcome: what became of one probe or claim: its verdict, the numbers behind it, or the error."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from perfgate.core import measurement
from perfgate.core.errors import RunError
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.judge_input import JudgeInput, Provenance
from perfgate.judging.assembly.measured import settings_notes
from perfgate.runs.record import DocumentedMetric, Failure, VerdictRecord
from perfgate.scenarios.extra_options import in_words
from perfgate.scenarios.scenario import Scenario


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
        synthetic: whether a stand-in made the numbers.
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
        return in_words(self.probe.scenario.engine)

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
