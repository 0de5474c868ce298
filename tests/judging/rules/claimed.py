"""Claims as plain arguments, as the tests of their rules give them."""

from typing import Any, Literal

from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement
from perfgate.judging.rules.claims import ClaimTest
from perfgate.scenarios.scenario import Claim, Source

Expect = Literal["better", "worse", "not_worse", "not_better"]


def statement(metric: str, expect: Expect, **more: Any) -> Claim:
    """What a claim states; `more` are its other fields."""
    source = Source("a document", "a table")
    return Claim("claim", "A claim", source, metric, "scenario", expect, **more)


def judge_claim(said: Claim, new: Any, versus: Any = (), **more: Any) -> Judgement:
    """Its judgement by a speed of both sides; `more` are other fields of the test."""
    return ClaimTest(said, (new, versus), **more).judge(Rule())


def judge_accuracy_claim(said: Claim, new: Any, versus: Any = (), *scores: Any) -> Judgement:
    """Its judgement by the answers of both sides, or by their scores."""
    return ClaimTest(said, answers=(new, versus), scores=scores or (None, None)).judge(Rule())
