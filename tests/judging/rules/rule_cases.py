"""What tests of the rules share: short names, values from losses, claims as plain arguments."""

import math
from collections.abc import Sequence
from typing import Any

from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules.claims import ClaimTest
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import AbTest
from perfgate.scenarios.scenario import Claim, Source

SPEED, TIME, TOTAL = "output_throughput", "tpot_mean_ms", "total_token_throughput"
SCORE = "accuracy:gsm8k:exact_match:strict-match"
PASS, OPEN, LOST, GAIN = Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION, Verdict.IMPROVEMENT


def statement(metric: str, expect: Any, **more: Any) -> Claim:
    """What a claim states; `more` are its other fields."""
    source = Source("a document", "a table")
    return Claim("claim", "A claim", source, metric, "scenario", expect, **more)


def judge_claim(said: Claim, new: Any, versus: Any = (), **more: Any) -> Judgement:
    """Its judgement by a speed of both sides; `more` are other fields of the test."""
    return ClaimTest(said, (new, versus), **more).judge()


def judge_accuracy_claim(said: Claim, new: Any, versus: Any = (), *scores: Any) -> Judgement:
    """Its judgement by the answers of both sides, or by their scores."""
    return ClaimTest(said, answers=(new, versus), scores=scores or (None, None)).judge()


def judge_ab(metric: str, a: Any, b: Any, band: float | None = None, **noise: Any) -> Judgement:
    return AbTest(metric, a, b, band, RunNoise(**noise)).judge()


def values(*sides: Sequence[float]) -> list[list[float]]:
    """Throughputs from losses in per cent."""
    return [[1000 * math.exp(-x / 100) for x in side] for side in sides]


def answers(right: int, questions: int = 1000) -> dict[str, bool]:
    """Of so many questions the first are right."""
    return {f"q{number}": number < right for number in range(questions)}
