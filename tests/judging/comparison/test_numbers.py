"""Numbers of a line or of options: what cannot be judged is refused with one clear message."""

from typing import Any

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.verdict import Judgement
from perfgate.judging.comparison.numbers import judge_numbers, read_fields

SPEED, GSM8K = "output_throughput", "accuracy:gsm8k:exact_match:strict-match"
NAN, INFINITY = float("nan"), float("inf")
BAND, SIGMA = "expected: a fraction between 0 and 1, e.g. 0.02", "the prior noise of one run cannot"


def judged(metric: str, baseline: Any, new: Any, **fields: Any) -> Judgement:
    given = {"metric": metric, "baseline": baseline, "new": new, **fields}
    return judge_numbers(read_fields(given))


@each(
    "metric, fields, problem",
    [
        (SPEED, {"new": [INFINITY]}, "new value 1 of output_throughput cannot be judged"),
        (SPEED, {"new": [1.0, NAN]}, "new value 2 of output_throughput cannot be judged"),
        (SPEED, {"new": [-1.0]}, "new value 1 of output_throughput cannot be judged"),
        (SPEED, {"baseline": [1.0, INFINITY]}, "baseline value 2 of output_throughput cannot"),
        (SPEED, {"controls": [INFINITY]}, "control value 1 of output_throughput cannot"),
        *((SPEED, {"band": band}, BAND) for band in (0, -0.1, 1, NAN, INFINITY)),
        *((SPEED, {"sigma": sigma}, SIGMA) for sigma in (0, -1, 1, NAN, INFINITY)),
        (GSM8K, {"questions": 0}, "questions: it cannot be used\n  found: "),
        (GSM8K, {"questions": 9, "new": [INFINITY]}, "value 1 is no share of right answers"),
        (GSM8K, {"questions": 9, "baseline": [NAN]}, "value 1 is no share of right answers"),
        (GSM8K, {"questions": 9, "band": 0}, "expected: an absolute fraction between 0 and 1"),
        (GSM8K, {"questions": 9, "sessions": 1}, "sessions means nothing for an accuracy"),
    ],
)
def test_values_that_cannot_be_judged(metric: str, fields: dict[str, Any], problem: str) -> None:
    """Neither in a line nor in options, whose numbers are texts."""
    given = {"metric": metric, "baseline": [1.0], "new": [1.0], **fields}
    texts = {
        name: [*map(str, value)] if isinstance(value, list) else str(value)
        for name, value in given.items()
    }
    for plain, are_texts in ((given, False), (texts, True)):
        with pytest.raises(InputError) as caught:
            judge_numbers(read_fields(plain, are_texts=are_texts))
        assert problem in str(caught.value)


def test_a_margin_that_was_raised_to_its_noise_is_told() -> None:
    found = judged(GSM8K, [0.9], [0.9], questions=100)
    assert found.band == pytest.approx(0.148, abs=1e-3)
    assert found.notes[0].startswith("margin raised from 2.0 to 14.8 points")


@each("most, needs_more, reason", [(None, True, "up to 4 more may decide"), (1, False, "no more")])
def test_more_values_are_asked_for_only_where_they_would_be_used(
    most: int | None, needs_more: bool, reason: str
) -> None:
    """Who sends values while more are needed would never end if the last allowed one asked too."""
    found = judged(SPEED, [100.0, 101.0, 99.0], [96.0], **({"max_runs": most} if most else {}))
    assert (found.verdict, found.needs_more_runs) == ("INCONCLUSIVE", needs_more)
    assert reason in found.reason
