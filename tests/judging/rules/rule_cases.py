"""What tests of the rules share: short names, values from losses, claims as plain arguments."""

import math
from collections.abc import Sequence
from typing import Any

from perfgate.core.verdict import Verdict
from perfgate.judging.rules.claims import Statement
from perfgate.scenarios.scenario import Claim, Source

SPEED, TIME, TOTAL = "output_throughput", "tpot_mean_ms", "total_token_throughput"
SCORE = "accuracy:gsm8k:exact_match:strict-match"
PASS, OPEN, LOST, GAIN = Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION, Verdict.IMPROVEMENT


def statement(metric: str, expect: Any, **more: Any) -> Statement:
    """What a claim states; `more` are its other fields."""
    source = Source("a document", "a table")
    return Statement(Claim("claim", "A claim", source, metric, "scenario", expect, **more))


def values(*sides: Sequence[float]) -> list[list[float]]:
    """Throughputs from losses in per cent."""
    return [[1000 * math.exp(-x / 100) for x in side] for side in sides]


def answers(right: int, questions: int = 1000) -> dict[str, bool]:
    """Of so many questions the first are right."""
    return {f"q{number}": number < right for number in range(questions)}
