"""Numbers from anywhere, read field by field and put to the gate one test at a time. Pure.

People and programs write these fields by hand, as JSON lines or as options, so that every message
says what is wrong and in which. The rule is the gate's; here values without a history get a band.
docs/reference/compare.md
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from perfgate.core.errors import InputError
from perfgate.core.files import json_text
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Judgement, Rule
from perfgate.judging.assembly.judge_input import JudgeInput, judge
from perfgate.judging.rules.accuracy import AccuracyTest, Score, check, counted_score, pooled_score
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.performance import PerformanceTest

LARGEST_LINE = 2**20  # bytes: the values of 50,000 fresh starts
_SHOWN = 60  # characters of a value that cannot be used

Values = Annotated[tuple[float, ...], Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1, lt=10**12)]


class NumberTest(Struct, frozen=True, forbid_unknown_fields=True):
    """One test of given values; None leaves a field to the metric's family or the rule.

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
    baseline: Values
    new: Values
    band: float | None = None
    sigma: float | None = None
    max_runs: Count | None = None
    questions: Count | None = None
    sessions: Count | None = None
    controls: tuple[float, ...] | None = None


FIELDS = NumberTest.__struct_fields__
LISTS = ("baseline", "new", "controls")
_REQUIRED = FIELDS[:3]
_LISTED = f"{', '.join(_REQUIRED)} and perhaps {', '.join(FIELDS[3:])}"
_EXPECTED = {
    "metric": "a name, e.g. output_throughput",
    **dict.fromkeys(LISTS, "numbers, one per fresh start of the engine"),
    **dict.fromkeys(("band", "sigma"), "a number, e.g. 0.02"),
    **dict.fromkeys(("max_runs", "questions", "sessions"), "a whole number of 1 or more"),
}

_ANSWERED = (
    *("verdict", "change", "interval", "band", "runs_used", "controls_used"),
    *("needs_more_runs", "needs_control", "mark"),
)


def read_line(text: bytes) -> NumberTest:
    """Read one line.

    Raises:
        InputError: it is no JSON object, or a field is missing, unknown or of another kind.
    """
    try:
        fields = json_text.parse_object(text, limit=LARGEST_LINE, own=True)
    except json_text.JsonError as error:
        raise InputError(
            f"the line {error.problem}",
            found=error.found,
            expected=error.expected or f"one whole object with {_LISTED}",
        ) from None
    return read_fields(fields)


def read_fields(fields: Mapping[str, object], *, are_texts: bool = False) -> NumberTest:
    """The test that plain values describe; a single number counts as a list of one.

    Args:
        fields: field → value.
        are_texts: numbers are written as texts, as options are.

    Raises:
        InputError: a field is missing, unknown or of another kind.
    """
    given = {
        name: [value] if name in LISTS and not isinstance(value, list) else value
        for name, value in fields.items()
        if value is not None or name in _REQUIRED
    }
    for name in _REQUIRED:
        if name not in given:
            raise InputError("it is missing", field=name, expected=_EXPECTED[name])
    for name in given:
        if name not in FIELDS:
            raise InputError("unknown field", field=name, expected=_LISTED)
    try:
        return msgspec.convert(given, NumberTest, strict=not are_texts)
    except msgspec.ValidationError as error:
        place = str(error).rpartition("$.")[2].rstrip("`]")
        name, _, position = place.partition("[")
        value: Any = given[name]
        raise InputError(
            f"value {int(position) + 1} is not a number" if position else "it cannot be used",
            field=name,
            found=json.dumps(value[int(position)] if position else value)[:_SHOWN],
            expected=_EXPECTED[name],
        ) from None


def judge_numbers(test: NumberTest) -> Judgement:
    """The gate's verdict; new values after the one that decides are not used.

    Raises:
        InputError: an unknown metric, no band, or values that cannot be judged.
    """
    make = _accuracy_test if is_accuracy(test.metric) else _performance_test
    rule = Rule() if test.max_runs is None else Rule(max_runs=test.max_runs)
    return judge(JudgeInput("", "", test.metric, rule, tests=[make(test)])).judgements[0]


def _performance_test(test: NumberTest) -> PerformanceTest:
    band = lookup(test.metric).family.band if test.band is None else test.band
    if band is None:
        raise InputError(
            f"{test.metric} has no band of its own",
            field="band",
            expected="a fraction between 0 and 1: the loss that counts",
            hint="give a band, wide enough for this metric's noise",
        )
    if test.questions is not None:
        raise InputError(
            f"{test.metric} does not come from questions",
            field="questions",
            found=test.questions,
            expected="questions only beside an accuracy",
        )
    if test.sessions is not None and test.sessions > len(test.baseline):
        raise InputError(
            "more sessions than baseline values",
            field="sessions",
            found=test.sessions,
            expected=f"at most {len(test.baseline)}",
        )
    noise = RunNoise(test.sigma)
    return PerformanceTest(
        test.metric, band, test.baseline, test.new, noise, test.sessions, test.controls
    )


def _accuracy_test(test: NumberTest) -> AccuracyTest:
    """Scores without answers: the mean of the baseline's against up to three evaluations."""
    questions = test.questions
    if questions is None:
        raise InputError(
            "how far a score can be trusted depends on how many questions it comes from",
            field="questions",
            expected="the number of questions behind each value",
            hint="add the number of questions, e.g. 1319 for all of GSM8K",
        )
    given = {"sigma": test.sigma, "controls": test.controls, "sessions": test.sessions}
    if name := next((one for one, value in given.items() if value is not None), ""):
        raise InputError(
            f"{name} means nothing for an accuracy: its spread is the binomial one, whatever the "
            "machine and the session",
            field=name,
            found=given[name],
            hint=f"leave {name} out",
        )
    for name, values in (("baseline", test.baseline), ("new", test.new)):
        for position, value in enumerate(values, start=1):
            if not 0 <= value <= 1:
                raise InputError(
                    f"value {position} is no share of right answers",
                    field=name,
                    found=value,
                    expected="0 to 1",
                    hint="divide percentages by 100" if 1 < value <= 100 else None,
                )
    if test.band is not None:
        check(test.metric, test.band)
    was = pooled_score([Score(value, questions) for value in test.baseline])
    now = [counted_score(round(value * questions), questions) for value in test.new]
    return AccuracyTest(test.metric, test.band, ((), ()), (was, now), ({}, {}))


def answer(judgement: Judgement) -> dict[str, Any]:
    """A judgement as the answer to a line: exactly the keys that docs/reference/compare.md names.

    Notes follow the reason in brackets, so that the one sentence says all there is to say.
    """
    reason = judgement.reason + "".join(f" ({note})" for note in judgement.notes)
    return {**{name: getattr(judgement, name) for name in _ANSWERED}, "reason": reason}
