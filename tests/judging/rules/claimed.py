"""Claims as plain arguments, as the tests of their rules give them."""

from typing import Any, Literal

from perfgate.judging.rules.claims import Statement
from perfgate.scenarios.scenario import Claim, Source

Expect = Literal["better", "worse", "not_worse", "not_better"]


def statement(metric: str, expect: Expect, **more: Any) -> Statement:
    """What a claim states; `more` are its other fields."""
    source = Source("a document", "a table")
    return Statement(Claim("claim", "A claim", source, metric, "scenario", expect, **more))
