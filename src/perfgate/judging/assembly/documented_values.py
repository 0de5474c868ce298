"""Documented values: measurements judged by what public documents report: values and claims.

Pure. The gate's rules are in `judging.rules`; here they get their numbers from measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, percent
from perfgate.judging.assembly.bands import Band
from perfgate.judging.rules.accuracy import Answers
from perfgate.judging.rules.claims import (
    EarlierStarts,
    Statement,
    judge_accuracy_claim,
    judge_claim,
)
from perfgate.judging.rules.documented import LEAST_TOLERANCE
from perfgate.judging.rules.probe import AccuracyTest, DocumentedTest
from perfgate.judging.rules.scores import Score, counted_score, documented_score, score_of
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Claim


def documented_test(
    value: DocumentedValue,
    band: Band,
    measurements: Sequence[Measurement],
    *,
    sigma: float | None = None,
) -> DocumentedTest | AccuracyTest:
    """One metric against its documented value; REGRESSION: worse than documented.

    Args:
        value: what is documented.
        band: the metric's, against that value.
        measurements: one per fresh start, in order.
        sigma: prior noise of one fresh start of a speed; None: that of its family on one node.

    Raises:
        InputError: a score of an unknown number of questions.
    """
    metric = band.metric
    if not is_accuracy(metric):
        now = [measurement.metrics[metric] for measurement in measurements]
        return DocumentedTest(metric, band.declared or LEAST_TOLERANCE, value.value, now, sigma)
    scores = [measured_score(metric, measurement) for measurement in measurements]
    return AccuracyTest(
        metric,
        band.declared,
        ((), ()),
        (documented_score(value.value, value.stderr), scores),
        ({metric: value.value}, measurements[-1].metrics),
        against="documented",
    )


def answers_of(metric: str, measurements: Sequence[Measurement]) -> list[Answers]:
    """Those of each evaluation; empty where an evaluator kept none."""
    return [measurement.answers.get(metric, {}) for measurement in measurements]


def measured_score(metric: str, measurement: Measurement) -> Score:
    """The score of one evaluation with the number of its questions.

    They are counted from the answers, or where an evaluator keeps none, taken from the fact
    ``questions``.

    Raises:
        InputError: neither is known.
    """
    answers = measurement.answers.get(metric)
    if answers:
        return score_of(answers)
    questions, score = measurement.facts.get("questions"), measurement.metrics.get(metric)
    if not isinstance(questions, int) or isinstance(questions, bool) or score is None:
        raise InputError(
            f"the number of questions behind {metric} is unknown",
            found=f"score {score}, questions {questions}",
            expected="answers, or the fact `questions` beside the score",
        )
    return counted_score(round(score * questions), questions)


@dataclass(frozen=True)
class ClaimTest:
    """A claim and the numbers of both sides: that which it speaks of, then the other one.

    Attributes:
        claim: the statement.
        values: of a speed: one per fresh start of each side.
        answers: of an accuracy: those of each evaluation.
        scores: of an accuracy: that of the first evaluation of each side.
        earlier: that one side is a baseline's; None: both are of one session.
        own_noise: whether the machine's own noise decides.
        sigma: noise of one fresh start of a speed.
    """

    claim: Claim
    values: tuple[Sequence[float], ...] = ()
    answers: tuple[Sequence[Answers], ...] = ()
    scores: tuple[Score | None, ...] = ()
    earlier: EarlierStarts | None = None
    own_noise: bool = False
    sigma: float | None = None

    def judge(self, rule: Rule) -> Judgement:  # noqa: ARG002 (a claim has its own)
        """REGRESSION: it does not hold.

        Raises:
            InputError: nothing to compare, or values that cannot be judged.
        """
        claim = self.claim
        statement = Statement(
            lookup(claim.metric),
            claim.expect,
            claim.value,
            claim.margin,
            claim.minimum_effect,
            claim.documented,
            claim.tolerance,
        )
        if statement.is_accuracy:
            new, versus = self.scores
            return judge_accuracy_claim(
                statement, *self.answers, new_score=new, versus_score=versus
            )
        return judge_claim(
            statement,
            *self.values,
            earlier=self.earlier,
            own_noise=self.own_noise,
            sigma=self.sigma,
        )


def claim_test(
    claim: Claim,
    new: Sequence[Measurement],
    versus: Sequence[Measurement] = (),
    *,
    nodes: int = 1,
    earlier: EarlierStarts | None = None,
    own_noise: bool = False,
) -> ClaimTest:
    """A claim and the measurements of both sides, one per fresh start; none: it has one side.

    Other arguments as the fields of `ClaimTest`.

    Raises:
        InputError: a score of an unknown number of questions.
    """
    metric, sides = claim.metric, (new, versus)
    if is_accuracy(metric):
        answers = tuple(answers_of(metric, side) for side in sides)
        scores = tuple(measured_score(metric, side[0]) if side else None for side in sides)
        return ClaimTest(claim, answers=answers, scores=scores)
    values = tuple([one.metrics[metric] for one in side] for side in sides)
    sigma = lookup(metric).family.on(nodes).sigma
    return ClaimTest(claim, values, earlier=earlier, own_noise=own_noise, sigma=sigma)


def gap(metric: str, documented: float, now: float) -> float:
    """How far a value is from the documented one, as a fraction; of an accuracy the difference."""
    return now - documented if is_accuracy(metric) else now / documented - 1


def with_gap(judgement: Judgement, documented: DocumentedValue | None) -> Judgement:
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
