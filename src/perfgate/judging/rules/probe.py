"""Probe: all that is judged of one probe, collected beforehand and then judged together.

The tests are plain values: metric by metric, what is held against what, with which band and noise.
Here they share the error rate, meet the anchor's wider bands, and become one verdict. The rules
themselves are in `perfgate.judging.rules.performance`, `.paired`, `.documented` and `.accuracy`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from perfgate.core.errors import InputError
from perfgate.core.measurement import Change, ChangedQuestions
from perfgate.core.metrics import ACCURACY, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Against, Judgement, Verdict, unjudged, verdict_of
from perfgate.judging.rules import scale
from perfgate.judging.rules.accuracy import Answers, Score, judge_paired, judge_unpaired
from perfgate.judging.rules.diagnostics import changed_questions, faults_of
from perfgate.judging.rules.documented import DocumentedTest as DocumentedTest
from perfgate.judging.rules.noise import RunNoise as RunNoise
from perfgate.judging.rules.paired import InterleavedTest as InterleavedTest
from perfgate.judging.rules.performance import CurveTest as CurveTest
from perfgate.judging.rules.performance import PerformanceTest as PerformanceTest


@dataclass(frozen=True)
class AccuracyTest:
    """An accuracy: answer by answer, or where they are not known on both sides, by two scores.

    Attributes:
        metric: canonical name.
        band: the drop that counts, absolute; None: the default.
        answers: those of each evaluation of the baseline, and of the new build.
        scores: of the baseline, and of each evaluation of the new build; None: the answers decide.
        measured: all scores of the baseline and of the new build, by metric; they tell a broken
            output or format from a small loss.
        against: what the baseline is.
    """

    metric: str
    band: float | None
    answers: tuple[Sequence[Answers], Sequence[Answers]]
    scores: tuple[Score, Sequence[Score]] | None
    measured: tuple[Mapping[str, float], Mapping[str, float]]
    against: Against = "baseline"

    def judge(self, rule: Rule) -> Judgement:
        """The verdict; errors as of `judge_paired` and `judge_unpaired`.

        Of the rule only the most fresh starts count: the error rates are an accuracy's own.
        """
        margin, most = self.band or ACCURACY.band or 0.0, rule.max_runs
        if self.scores is None:
            found = judge_paired(self.metric, *self.answers, margin=margin, max_runs=most)
        else:
            than = "the documented score" if self.against == "documented" else "the baseline"
            found = judge_unpaired(
                self.metric, *self.scores, margin=margin, max_runs=most, than=than
            )
        reason = found.reason
        if self.against == "documented" and found.verdict == Verdict.REGRESSION:
            reason = f"worse than the documented score: {reason}"
        notes = (*found.notes, *faults_of(self.metric, *self.measured))
        return replace(found, reason=reason, notes=notes, against=self.against)

    def changed(self, used: int, against: Against) -> ChangedQuestions | None:
        """Which questions are answered otherwise; None: the answers are not known on both sides.

        Args:
            used: how many evaluations of the new build the verdict rests on.
            against: what the baseline is.
        """
        if self.scores is not None or not used:
            return None
        baseline, new = self.answers
        return changed_questions(self.metric, baseline, new[:used], against)


@dataclass(frozen=True)
class NoTest:
    """A metric that cannot be judged, and why; `measured` is its last value."""

    metric: str
    band: float | None
    measured: float | None
    reason: str
    against: Against = "baseline"

    def judge(self, rule: Rule) -> Judgement:  # noqa: ARG002
        """NO_BASELINE."""
        found = unjudged(self.metric, Verdict.NO_BASELINE, self.reason, band=self.band)
        return replace(found, measured=self.measured, against=self.against)


class JudgedTest(Protocol):
    """Anything that gives one judgement: a test of a metric, or of a claim about one."""

    def judge(self, rule: Rule) -> Judgement:
        """The verdict."""


MetricTest = PerformanceTest | InterleavedTest | CurveTest | DocumentedTest | AccuracyTest | NoTest


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
    observed: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    controls_wanted: frozenset[Against] = frozenset()
    changed: tuple[ChangedQuestions, ...] = ()


def judge_probe(
    tests: Sequence[JudgedTest],
    rule: Rule,
    anchor: Sequence[MetricTest] = (),
    observed: Sequence[PerformanceTest] = (),
) -> ProbeJudgement:
    """Judge every metric of a probe and take the worst verdict.

    Each has the same error rates whatever stands beside it: a verdict depends neither on what else
    is selected nor on how CI splits it (statistics §3).

    Args:
        tests: one per gating metric, in order; at least one.
        rule: error rates and the most fresh starts.
        anchor: those against the anchor, with the bands of the nearest baseline.
        observed: metrics that are reported and do not gate.

    Raises:
        InputError: values that cannot be judged; of observed metrics they become a note.
    """
    judgements = [test.judge(rule) for test in tests]
    for test in anchor:
        judged = _with_anchor_band(test).judge(rule)
        reason = judged.reason.replace("than the baseline by", "than the anchor by")
        reason = f"since the last release: {reason}"
        judgements.append(replace(judged, against="anchor", reason=reason))
    changes, notes = observed_changes(observed, rule)
    changed = (
        test.changed(judged.runs_used, judged.against)
        for test, judged in zip([*tests, *anchor], judgements, strict=True)
        if isinstance(test, AccuracyTest)
    )
    return replace(
        together(judgements),
        observed=changes,
        notes=notes,
        changed=tuple(one for one in changed if one is not None),
    )


def observed_changes(
    tests: Iterable[PerformanceTest], rule: Rule
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """How the metrics moved that are reported and do not gate; and a note on each that cannot be
    compared, as what does not gate spoils no verdict.
    """
    changes, notes = [], []
    for test in tests:
        try:
            changes.append(test.change(rule))
        except InputError as error:
            notes.append(f"{test.metric} is not compared: {error.problem}")
    return tuple(changes), tuple(notes)


def _with_anchor_band(test: MetricTest) -> MetricTest:
    band = lookup(test.metric).family.band if test.band is None else test.band
    return test if band is None else replace(test, band=scale.anchor_band(test.metric, band))


def together(judgements: Sequence[Judgement]) -> ProbeJudgement:
    """The worst of `judgements`; those that are only listed decide nothing and come last."""
    counting = [one for one in judgements if not _is_only_listed(one)]
    listed = [one for one in judgements if _is_only_listed(one)]
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
