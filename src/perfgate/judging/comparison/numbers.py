"""Numbers from anywhere, read field by field and put to the gate one test at a time. Pure.

People and programs write these fields by hand, as JSON lines or as options, so that every message
says what is wrong and in which. The rule is the gate's; here values without a history get a band.
docs/reference/judge.md
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfgate.core import json_text
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.assembly.judge_input import JudgeInput, judge
from perfgate.judging.rules.accuracy import check
from perfgate.judging.rules.probe import AccuracyTest, PerformanceTest, RunNoise
from perfgate.judging.rules.scores import Score, counted_score, pooled_score

LARGEST_LINE = 2**20  # bytes: the values of 50,000 fresh starts


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
        sessions: sessions behind the baseline; None: as many as values.
        controls: values of the baseline's build, measured in the session of the new ones, in order;
            empty: it can be started, and no start was made yet.
    """

    metric: str
    baseline: tuple[float, ...]
    new: tuple[float, ...]
    band: float | None = None
    sigma: float | None = None
    max_runs: int | None = None
    questions: int | None = None
    sessions: int | None = None
    controls: tuple[float, ...] | None = None


def read_question(text: str) -> NumberTest:
    """Read one line.

    Raises:
        InputError: it is no JSON object, or a field is missing, unknown or of another kind.
    """
    try:
        fields = json_text.parse(text, limit=LARGEST_LINE, own=True)
    except json_text.JsonError as error:
        if not error.is_cut:
            raise InputError(
                f"the line {error.problem}", found=error.found, expected=error.expected
            ) from None
        raise InputError(
            "the line is not JSON",
            found=f"{text.strip()[:80]} ({error.found})",
            expected='one whole object, e.g. {"metric": "output_throughput", '
            '"baseline": [101, 99.7], "new": [96.1]}',
        ) from None
    if not isinstance(fields, dict):
        raise InputError(
            "not a JSON object", found=_shown(fields), expected=f"an object with {_LISTED}"
        )
    return read_fields(fields)


def read_fields(fields: Mapping[str, object]) -> NumberTest:
    """The test that plain values describe.

    Raises:
        InputError: a field is missing, unknown or of another kind.
    """
    for name in fields:
        if name not in FIELDS:
            raise InputError("unknown field", field=name, expected=_LISTED)
    for name in REQUIRED:
        if name not in fields:
            raise InputError("the field is missing", field=name, expected=_LISTED)
    given: dict[str, Any] = {
        name: _READERS[name](name, value)
        for name, value in fields.items()
        if value is not None or name in REQUIRED
    }
    return NumberTest(**given)


def _name(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(
            "not a metric's name",
            field=field,
            found=_shown(value),
            expected='text, e.g. "output_throughput"',
        )
    return value


def _values(field: str, value: object) -> tuple[float, ...]:
    """The values of a list; a single number counts as a list of one."""
    if not isinstance(value, list):
        return (_number(field, value),)
    if not value:
        raise InputError(
            "no values",
            field=field,
            found="[]",
            expected="at least one number",
            hint="one value per fresh start of the engine",
        )
    return tuple(_number(field, one, position) for position, one in enumerate(value, start=1))


def _controls(field: str, value: object) -> tuple[float, ...]:
    """Empty where the other build can be started, and was not yet."""
    return () if value == [] else _values(field, value)


def _number(field: str, value: object, position: int = 0) -> float:
    expected, hint = "a number, e.g. 96.1", None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            expected = "a finite number"
    elif isinstance(value, str):
        hint = "write it without quotes"
    problem = f"value {position} is not a number" if position else "not a number"
    raise InputError(problem, field=field, found=_shown(value), expected=expected, hint=hint)


def _count(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**12:
        raise InputError(
            "not a count", field=field, found=_shown(value), expected="a whole number of 1 or more"
        )
    return value


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


_READERS: dict[str, Callable[[str, object], Any]] = {
    "metric": _name,
    "baseline": _values,
    "new": _values,
    "band": _number,
    "sigma": _number,
    "max_runs": _count,
    "questions": _count,
    "sessions": _count,
    "controls": _controls,
}
FIELDS = tuple(_READERS)
REQUIRED, _OPTIONAL = FIELDS[:3], FIELDS[3:]
_LISTED = f"{', '.join(REQUIRED)} and perhaps {', '.join(_OPTIONAL)}"


def judge_question(question: NumberTest) -> Judgement:
    """The gate's verdict; new values after the one that decides are not used.

    Raises:
        InputError: an unknown metric, no band, or values that cannot be judged.
    """
    make = _accuracy_test if is_accuracy(question.metric) else _performance_test
    rule = Rule() if question.max_runs is None else Rule(max_runs=question.max_runs)
    given = JudgeInput("", "", question.metric, rule, tests=[make(question)])
    return judge(given).judgements[0]


def _performance_test(question: NumberTest) -> PerformanceTest:
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
    return PerformanceTest(
        question.metric,
        band,
        question.baseline,
        question.new,
        RunNoise(question.sigma),
        question.sessions,
        question.controls,
    )


def _accuracy_test(question: NumberTest) -> AccuracyTest:
    """Scores without answers: the mean of the baseline's against up to three evaluations."""
    questions = question.questions
    if questions is None:
        raise InputError(
            "how far a score can be trusted depends on how many questions it comes from",
            field="questions",
            expected="the number of questions behind each value",
            hint="add the number of questions, e.g. 1319 for all of GSM8K",
        )
    for name in ("sigma", "controls", "sessions"):
        if (given := getattr(question, name)) is not None:
            raise InputError(
                f"{name} means nothing for an accuracy: its spread is the binomial one, whatever "
                "the machine and the session",
                field=name,
                found=given,
                hint=f"leave {name} out",
            )
    for name, values in (("baseline", question.baseline), ("new", question.new)):
        for position, value in enumerate(values, start=1):
            if not 0 <= value <= 1:
                raise InputError(
                    f"value {position} is no share of right answers",
                    field=name,
                    found=value,
                    expected="0 to 1",
                    hint="divide percentages by 100" if 1 < value <= 100 else None,
                )
    if question.band is not None:
        check(question.metric, question.band)
    was = pooled_score([Score(value, questions) for value in question.baseline])
    now = [counted_score(round(value * questions), questions) for value in question.new]
    return AccuracyTest(question.metric, question.band, ((), ()), (was, now), ({}, {}))


def answer(judgement: Judgement) -> dict[str, Any]:
    """A judgement as the answer to a line: exactly the keys that docs/reference/judge.md names.

    Notes follow the reason in brackets, so that the one sentence says all there is to say.
    """
    same = (
        "change",
        "interval",
        "band",
        "runs_used",
        "controls_used",
        "needs_more_runs",
        "needs_control",
        "mark",
    )
    return {
        "verdict": judgement.verdict.value,
        **{name: getattr(judgement, name) for name in same},
        "reason": judgement.reason + "".join(f" ({note})" for note in judgement.notes),
    }
