"""Numbers from anywhere, put to the gate one test at a time. Pure.

The rule is `perfgate.judging.rules`'; here values without a history get a band and a verdict. How a
question is written as a line is the business of `perfgate.judging.comparison.number_lines`.
docs/reference/judge.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.performance import Comparison, judge
from perfgate.judging.rules.scores import Score, counted_score, judge_unpaired, pooled_score


@dataclass(frozen=True)
class NumberTest:
    """What is asked of the gate; None leaves a field to the metric's family or the rule.

    Attributes:
        metric: canonical name.
        baseline: accepted values, one per fresh start, in any order.
        new: new values, one per fresh start, in the order measured.
        band: the loss that counts, a fraction; of an accuracy absolute (0.02: two points).
        sigma: noise of one run on the log scale (0.005: 0.5 %); an accuracy has none.
        max_runs: new values that may be used, at most.
        questions: questions behind each value of an accuracy.
        controls: values of the baseline's build, measured in the session of the new ones, in order;
            empty: it can be started, and no start was made yet.
        sessions: sessions behind the baseline; None: as many as values.
    """

    metric: str
    baseline: tuple[float, ...]
    new: tuple[float, ...]
    band: float | None = None
    sigma: float | None = None
    max_runs: int | None = None
    questions: int | None = None
    controls: tuple[float, ...] | None = None
    sessions: int | None = None


def judge_question(question: NumberTest) -> Judgement:
    """The gate's verdict; new values after the one that decides are not used.

    Raises:
        InputError: an unknown metric, no band, or values that cannot be judged.
    """
    if is_accuracy(question.metric):
        return _judge_accuracy(question)
    band = lookup(question.metric).family.band if question.band is None else question.band
    if band is None:
        raise InputError(
            f"{question.metric} has no band of its own",
            field="band",
            expected="a fraction between 0 and 1: the loss that counts",
            hint="give a band, wide enough for this metric's noise",
        )
    if question.questions is not None:
        raise InputError(
            f"{question.metric} does not come from questions",
            field="questions",
            found=question.questions,
            expected="questions only beside an accuracy",
        )
    if question.sessions is not None and question.sessions > len(question.baseline):
        raise InputError(
            "more sessions than baseline values",
            field="sessions",
            found=question.sessions,
            expected=f"at most {len(question.baseline)}",
        )
    test = Comparison(
        question.metric,
        band,
        question.baseline,
        question.new,
        RunNoise(question.sigma),
        question.sessions,
        question.controls,
    )
    return judge(test, Rule(**_given(question, "max_runs")))


def _given(question: NumberTest, *fields: str) -> dict[str, Any]:
    """Those of the fields that the question does not leave to the rule."""
    found = {name: getattr(question, name) for name in fields}
    return {name: value for name, value in found.items() if value is not None}


def _judge_accuracy(question: NumberTest) -> Judgement:
    """Scores without answers: the mean of the baseline's against up to three evaluations."""
    questions = question.questions
    if questions is None:
        raise InputError(
            "how far a score can be trusted depends on how many questions it comes from",
            field="questions",
            expected="the number of questions behind each value",
            hint="add the number of questions, e.g. 1319 for all of GSM8K",
        )
    for name, given in _given(question, "sigma", "controls", "sessions").items():
        raise InputError(
            f"{name} means nothing for an accuracy: its spread is the binomial one, whatever the "
            "machine and the session",
            field=name,
            found=given,
            hint=f"leave {name} out",
        )
    for name, values in (("baseline", question.baseline), ("new", question.new)):
        _require_shares(name, values)
    band = question.band
    return judge_unpaired(
        question.metric,
        pooled_score([Score(value, questions) for value in question.baseline]),
        [counted_score(round(value * questions), questions) for value in question.new],
        margin=(lookup(question.metric).family.band or 0.0) if band is None else band,
        **_given(question, "max_runs"),
    )


def _require_shares(name: str, values: Sequence[float]) -> None:
    for position, value in enumerate(values, start=1):
        if not 0 <= value <= 1:
            raise InputError(
                f"value {position} is no share of right answers",
                field=name,
                found=value,
                expected="0 to 1",
                hint="divide percentages by 100" if 1 < value <= 100 else None,
            )


def answer(judgement: Judgement) -> dict[str, Any]:
    """A judgement as the answer to a line: exactly the keys that docs/reference/judge.md names.

    Notes follow the reason in brackets, so that the one sentence says all there is to say.
    """
    return {
        "verdict": judgement.verdict.value,
        "change": judgement.change,
        "interval": None if judgement.interval is None else list(judgement.interval),
        "band": judgement.band,
        "runs_used": judgement.runs_used,
        "controls_used": judgement.controls_used,
        "needs_more_runs": judgement.needs_more_runs,
        "needs_control": judgement.needs_control,
        "mark": judgement.mark,
        "reason": judgement.reason + "".join(f" ({note})" for note in judgement.notes),
    }
