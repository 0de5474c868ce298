"""The rules for many cases at once say what the oracle says of each, in verdict and starts.

At random: baselines, policies, noise as engines show it, losses, slow machines, missing starts. A
verdict is a case of one: the same cases are given to the functions that judge.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import rules_oracle as oracle
from plain_values import judge_performance
from sizes import sized

from benchmarks.detection.draws import NOISES, SCENARIOS
from perfgate.core.verdict import ControlPolicy, Judgement, Rule, Verdict
from perfgate.judging.forecast.simulation import starts
from perfgate.judging.rules import accuracy, documented
from perfgate.judging.rules import sequential as many
from perfgate.judging.rules.constants import ControlRule

pytestmark = pytest.mark.nightly

METRIC = "tpot_mean_ms"  # lower is better: a loss is a plus on the scale
SCORE = "accuracy:gsm8k:exact_match:strict-match"
SIGMA, ROWS = 0.005, 40
KINDS = (*NOISES[6:], *NOISES[:6])
NAMES = {
    many.INCONCLUSIVE: "INCONCLUSIVE",
    many.PASS: "PASS",
    many.HOST_SHIFT: "PASS",
    many.REGRESSION: "REGRESSION",
}


def said(found: many.Verdicts, row: int) -> tuple[str, int, int]:
    return NAMES.get(int(found.codes[row]), "PASS"), int(found.new[row]), int(found.controls[row])


def judged(found: Judgement) -> tuple[str, int, int]:
    """An IMPROVEMENT is a PASS after one start, whose second is only told of."""
    if found.verdict == Verdict.IMPROVEMENT:
        return "PASS", 1, found.controls_used
    return found.verdict.value, found.runs_used, found.controls_used


class Case:
    """Random baselines, new starts, controls and rule; `ROWS` trials of them."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng([15, seed])
        self.n_base = int(draw.integers(1, 12))
        sessions, between = int(draw.integers(1, self.n_base + 1)), float(draw.uniform(0.0, 0.7))
        self.shared: dict[str, Any] = {"sessions": sessions, "between": between}
        self.rule = Rule(
            alpha=float(draw.uniform(0.001, 0.1)),
            beta=float(draw.uniform(0.001, 0.1)),
            max_runs=int(draw.integers(1, 6)),
            prior_dof=float(draw.integers(1, 30)),
        )
        self.margin = SIGMA * float(draw.uniform(2, 6))
        kind = SCENARIOS[draw.choice(KINDS)]
        self.base = SIGMA * starts(draw, kind, ROWS, 1, [1] * self.n_base)[:, 0].astype(np.float64)
        now = SIGMA * starts(draw, kind, ROWS, 1, [8])[:, 0].astype(np.float64)
        moved = draw.choice([0.0, 0.0, 1.0, 3.5], (ROWS, 1)) * self.margin
        new = now[:, :5] + moved + draw.uniform(-1, 5, (ROWS, 1)) * self.margin
        self.new = new[:, : int(draw.choice([1, 2, 3, 4, 5, 5, 5]))]
        controls = now[:, 5:] + moved * draw.integers(0, 2)
        self.controls = controls[:, : int(draw.choice([0, 1, 2, 3, 3, 3]))]
        dof = self.rule.prior_dof
        self.levels = many.levels(self.base, SIGMA, **self.shared, prior_dof=dof)

    def level(self, row: int) -> oracle.Level:
        dof = self.rule.prior_dof
        return oracle.level(self.base[row].tolist(), SIGMA, **self.shared, prior_dof=dof)

    def judged(self, row: int, policy: ControlPolicy, *, controlled: bool) -> Judgement:
        sides = (np.exp(side[row]).tolist() for side in (self.base, self.new, self.controls))
        base, new, controls = sides
        settings = {"band": math.expm1(self.margin), "sigma": SIGMA, "rule": self.rule}
        beside = {"controls": controls if controlled else None, "policy": policy}
        return judge_performance(METRIC, base, new, **self.shared, **settings, **beside)


def cases() -> Iterator[Case]:
    return (Case(seed) for seed in range(sized(60, 50_000 // ROWS)))


def test_with_controls() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for case in cases():
        rule = ControlRule().with_at_most(case.rule.max_runs)
        found = many.controlled(case.levels, case.new, case.controls, case.margin, rule)
        for row in range(ROWS):
            new, controls = case.new[row].tolist(), case.controls[row].tolist()
            most = new[: case.rule.max_runs]
            expected = oracle.controlled(case.level(row), most, controls, case.margin, rule)
            seen[expected.verdict, expected.mark] += 1
            assert said(found, row) == expected[:3]
            assert (found.codes[row] == many.HOST_SHIFT) == (expected.mark == "HOST_SHIFT")
            if row % 4 == 0:
                verdict = case.judged(row, "auto", controlled=True)
                assert judged(verdict) == expected[:3]
                assert verdict.mark == expected.mark
    assert min(seen.values()) > 20, seen
    assert len(seen) == 5


@pytest.mark.parametrize("policy", ["auto", "required"])
def test_without_controls(policy: ControlPolicy) -> None:
    seen: Counter[str] = Counter()
    required = policy == "required"
    for case in cases():
        found = many.alone(case.levels, case.new, case.margin, case.rule, required=required)
        for row in range(ROWS):
            new = case.new[row].tolist()
            expected = oracle.alone(case.level(row), new, case.margin, case.rule, required=required)
            seen[expected.verdict] += 1
            assert said(found, row) == expected[:3]
            if row % 4 == 0:
                verdict = case.judged(row, policy, controlled=False)
                assert (*judged(verdict), verdict.mark) == expected
    assert (seen["REGRESSION"] > 0) == (policy == "auto")
    assert seen["PASS"] > 20


def test_documented_speeds() -> None:
    draw, seen = np.random.default_rng(15), set()
    for _ in range(sized(25, 250)):
        sigma = float(draw.choice([0.005, 0.015, 0.037]))
        margin = -math.log(1 - float(draw.choice([0.1, 0.15, 0.25])))
        at = draw.uniform(0, 2 * margin, (200, 1))
        losses = draw.normal(at, 2 * sigma, (200, int(draw.integers(1, 4))))
        found = documented.decide(losses, margin, sigma)
        for row, one in enumerate(losses.tolist()):
            expected = oracle.documented(one, margin, sigma)
            assert said(found, row) == expected[:3]
            seen.add(expected)
    assert len(seen) == 8  # PASS after 1, 2, 3; REGRESSION after 2, 3; INCONCLUSIVE after 1, 2, 3


def test_scores() -> None:
    draw, seen = np.random.default_rng(72), set()
    for _ in range(sized(250, 2500)):
        n = int(draw.choice((198, 200, 1319)))
        share = float(draw.uniform(0.3, 0.97))
        error = float(draw.choice((0.0, 1.0, 3.0))) * math.sqrt(share * (1 - share) / n)
        document = accuracy.documented_score(share, error or None)
        drop = draw.choice((0, 0.02, 0.05, 0.1, 0.15), (20, 1))
        right = np.rint(draw.normal(share - drop, 0.02, (20, int(draw.integers(1, 4)))) * n)
        right = np.clip(right, 0, n)
        declared = float(draw.choice((0.01, 0.05, 0.1)))
        margin = max(declared, accuracy.least_margin(document, n))
        found = accuracy.decide_scores(right / n, document, n, margin)
        for row, one in enumerate(right.tolist()):
            expected = oracle.unpaired(share, error, [x / n for x in one], n, declared)
            assert said(found, row) == expected[:3]
            seen.add(expected)
        asked = [accuracy.counted_score(int(x), n) for x in right[0]]
        verdict = accuracy.judge_unpaired(SCORE, document, asked, margin=declared)
        assert judged(verdict) == said(found, 0)
    assert len(seen) == 8


def test_paired_answers() -> None:
    draw, seen = random.Random(71), Counter[oracle.Found]()
    for _ in range(sized(5_000, 50_000)):
        questions = draw.randint(8, 30)
        chance = [draw.choice((0.0, 0.3, 0.7, 1.0, 1.0)) for _ in range(questions)]
        base = [[draw.random() < p for p in chance] for _ in range(draw.choice((1, 1, 2, 3, 4)))]
        kept = draw.choice((1.0, 0.8, 0.5, 0.0))
        new = [[draw.random() < p * kept for p in chance] for _ in range(draw.randint(1, 4))]
        margin = draw.choice((0.103, 0.207, 0.311, 0.451))  # none that a share meets exactly
        found = accuracy.judge_paired(
            SCORE,
            [{str(q): one for q, one in enumerate(row)} for row in base],
            [{str(q): one for q, one in enumerate(row)} for row in new],
            margin=margin,
        )
        expected = oracle.paired(base, new, margin)
        seen[expected] += 1
        assert judged(found) == expected[:3]
    assert len(seen) == 8
    assert min(seen.values()) > 10


def test_a_probe_ends_with_its_first_regression_or_when_all_is_decided() -> None:
    looks = ((1, 0), (2, 0), (2, 1))

    def metric(*decided: tuple[int, int]) -> many.Verdicts:
        codes, at = zip(*decided, strict=True)
        return many.Verdicts(np.array(codes, np.int8), np.array(at, np.int8), looks)

    one = metric((many.PASS, 0), (many.REGRESSION, 1), (many.PASS, 0), (many.PASS, 1))
    other = metric((many.HOST_SHIFT, 2), (many.PASS, 2), (many.INCONCLUSIVE, 2), (many.PASS, 0))
    probe = many.combine([one, other])
    assert probe.codes.tolist() == [many.HOST_SHIFT, many.REGRESSION, many.INCONCLUSIVE, many.PASS]
    assert probe.new.tolist() == [2, 2, 2, 2]
    assert probe.controls.tolist() == [1, 0, 1, 0]
