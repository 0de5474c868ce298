"""What turns numbers into verdicts changes only with its version: recorded judgements, given again.

To record them, after `RULE_VERSION` in perfgate/core/verdict.py was raised:
python tests/judging/rules/test_rule_version.py
"""

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from plain_values import judge_probe
from tables import each

from perfgate.core.plain import to_plain
from perfgate.core.verdict import RULE_VERSION, Rule
from perfgate.judging.assembly.judge_input import MetricTest
from perfgate.judging.rules.accuracy import AccuracyTest, Score
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import InterleavedTest
from perfgate.judging.rules.performance import PerformanceTest

RECORDED = Path(__file__).parents[2] / "data" / f"rule_{RULE_VERSION}.json"
SPREAD = (1.0, 1.004, 0.997, 1.002, 0.999)
CHANGED = (
    "the gate gives another judgement: raise RULE_VERSION in core/verdict.py, and record it again"
)


def cases() -> Iterator[tuple[str, Sequence[MetricTest]]]:
    """Name → what is judged; made so that every kind of verdict is among them."""
    loads = itertools.product(
        ("output_throughput", "tpot_p99_ms"),
        (-0.08, -0.03, -0.01, 0.0, 0.02, 0.09),
        (1, 2, 4),
        (None, (), (1.0, 1.001), (0.92, 0.921)),
    )
    for metric, change, starts, controls in loads:
        before = [100.0 * one for one in SPREAD]
        now = [100.0 * (1 + change) * one for one in SPREAD[:starts]]
        beside = None if controls is None else [100.0 * one for one in controls]
        test = PerformanceTest(metric, 0.04, before, now, RunNoise(0.01), 3, controls=beside)
        yield f"{metric} {change} {starts} {controls}", [test]
    for right, questions in itertools.product((0.90, 0.93, 0.95, 0.97), (200, 1319)):
        scores = (Score(0.95, questions), [Score(right, questions)])
        metric = "accuracy:gsm8k:exact_match:strict-match"
        plain = AccuracyTest(metric, 0.02, ([], [{}]), scores, ({}, {}))
        yield f"score {right} {questions}", [plain]
        asked = [f"q{number}" for number in range(questions)]
        old = {one: number % 20 != 0 for number, one in enumerate(asked)}
        new = {one: number % round(1 / (1 - right)) != 0 for number, one in enumerate(asked)}
        paired = AccuracyTest(metric, 0.02, ([old], [new]), None, ({metric: 0.95}, {metric: right}))
        yield f"paired {right} {questions}", [paired]
    for change, starts in itertools.product((-0.2, -0.05, 0.0, 0.1), (2, 4)):
        before = [50.0 * one for one in (*SPREAD[:4],)]
        now = [50.0 * (1 + change) * one for one in SPREAD[:starts]]
        test_ = InterleavedTest("output_throughput", 0.1, before, now, [before, now], 4)
        yield f"in turns {change} {starts}", [test_]


# Name in the record → that of a judgement.
FIELDS = {one: one for one in ("verdict", "measured", "change", "interval", "mark")}
FIELDS |= {"runs": "runs_used", "controls": "controls_used", "more": "needs_more_runs"}


def judged(tests: Sequence[MetricTest]) -> list[Mapping[str, Any]]:
    found = to_plain(judge_probe(tests, Rule()))
    kept = [{name: one[of] for name, of in FIELDS.items()} for one in found["judgements"]]
    return [{"verdict": found["verdict"], "judgements": kept}]


CASES = dict(cases())


def test_every_verdict_is_among_the_cases() -> None:
    recorded = json.loads(RECORDED.read_text())
    verdicts = {one[0]["verdict"] for one in recorded.values()}
    assert {"PASS", "REGRESSION", "IMPROVEMENT", "INCONCLUSIVE"} <= verdicts
    assert recorded.keys() == CASES.keys()


@each("name", CASES)
def test_a_judgement_changes_only_with_the_version_of_the_rule(name: str) -> None:
    (recorded,) = json.loads(RECORDED.read_text())[name]
    (found,) = judged(CASES[name])
    assert found["verdict"] == recorded["verdict"], CHANGED
    for before, now in zip(recorded["judgements"], found["judgements"], strict=True):
        for field, value in before.items():
            expected = value if not isinstance(value, float | list) else pytest.approx(value, 1e-9)
            assert now[field] == expected, CHANGED


if __name__ == "__main__":
    text = json.dumps({name: judged(one) for name, one in CASES.items()}, indent=1)
    sys.exit(RECORDED.write_text(text + "\n") < 1)
