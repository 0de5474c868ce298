"""The rule in numpy says what the gate says, case by case, with controls and without."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from perfgate.core.metrics import lookup
from perfgate.core.rule import ControlRule, Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.forecast.noise_scenarios import SCENARIOS, starts
from perfgate.judging.rules import simulated_verdicts as many
from perfgate.judging.rules.baseline_level import BaselineLevel
from perfgate.judging.rules.controlled_test import decide
from perfgate.judging.rules.controls import Controls
from perfgate.judging.rules.performance import baseline_level
from perfgate.judging.rules.sequential_test import judge

METRIC = lookup("tpot_mean_ms")  # lower is better: a loss is a plus on the scale
SIGMA = 0.005
ROWS = 40
CODES = {
    Verdict.INCONCLUSIVE: many.INCONCLUSIVE,
    Verdict.PASS: many.PASS,
    Verdict.IMPROVEMENT: many.PASS,
    Verdict.REGRESSION: many.REGRESSION,
}


class Case:
    """Random baselines, new starts, controls and policy; `ROWS` trials of them."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng([15, seed])
        self.n_base = int(draw.integers(1, 12))
        self.sessions = int(draw.integers(1, self.n_base + 1))
        self.between = float(draw.uniform(0.0, 0.7))
        self.rule = Rule(
            alpha=float(draw.uniform(0.001, 0.1)),
            beta=float(draw.uniform(0.001, 0.1)),
            max_runs=int(draw.integers(1, 6)),
            prior_dof=float(draw.integers(1, 30)),
        )
        self.margin = SIGMA * float(draw.uniform(2, 6))
        kind = str(draw.choice(list(SCENARIOS)))
        values = SIGMA * starts(draw, kind, ROWS, 1, [1] * self.n_base)[:, 0].astype(np.float64)
        now = SIGMA * starts(draw, kind, ROWS, 1, [8])[:, 0].astype(np.float64)
        moved = draw.choice([0.0, 0.0, 1.0, 3.5], (ROWS, 1)) * self.margin
        self.base, self.controls = values, now[:, 5:] + moved * draw.integers(0, 2)
        self.new = now[:, :5] + moved + draw.uniform(-1, 5, (ROWS, 1)) * self.margin
        self.levels = many.levels(
            values,
            SIGMA,
            sessions=self.sessions,
            between=self.between,
            prior_dof=self.rule.prior_dof,
        )

    def level(self, row: int) -> BaselineLevel:
        return baseline_level(
            METRIC,
            self.base[row].tolist(),
            SIGMA,
            self.rule,
            between=self.between,
            sessions=self.sessions,
        )[0]


def cases() -> Iterator[Case]:
    return (Case(seed) for seed in range(60))


def test_with_controls_every_verdict_and_count_of_starts_is_the_gates() -> None:
    seen: Counter[tuple[Verdict, str]] = Counter()
    for case in cases():
        rule = ControlRule().with_at_most(case.rule.max_runs)
        found = many.controlled(case.levels, case.new, case.controls, case.margin, rule)
        for row in range(ROWS):
            one = decide(
                case.level(row),
                case.new[row].tolist(),
                case.controls[row].tolist(),
                case.margin,
                rule,
            )
            code = many.HOST_SHIFT if one.mark == "HOST_SHIFT" else CODES[one.verdict]
            seen[one.verdict, one.mark] += 1
            assert (found.codes[row], found.new[row], found.controls[row]) == (
                code,
                one.new,
                one.controls,
            )
    assert min(seen.values()) > 20, seen
    assert len(seen) == 5


@pytest.mark.parametrize("policy", ["auto", "required"])
def test_without_controls_every_verdict_and_count_of_starts_is_the_gates(policy) -> None:
    seen: Counter[Verdict] = Counter()
    for case in cases():
        found = many.alone(
            case.levels, case.new, case.margin, case.rule, required=policy == "required"
        )
        for row in range(ROWS):
            new = case.new[row].tolist()
            one = judge(case.level(row), new, case.margin, (), Controls(None, policy))
            seen[one.verdict] += 1
            assert found.codes[row] == CODES[one.verdict]
            if one.verdict != Verdict.IMPROVEMENT:  # the second start is only told of
                assert found.new[row] == one.runs_used
            assert found.controls[row] == 0
    assert (seen[Verdict.REGRESSION] > 0) == (policy == "auto")
    assert seen[Verdict.PASS] > 20


def test_a_probe_ends_with_its_first_regression_or_when_all_is_decided() -> None:
    looks = ((1, 0), (2, 0), (2, 1))

    def metric(*decided: tuple[int, int]) -> many.Verdicts:
        codes, at = zip(*decided, strict=True)
        return many.Verdicts(np.array(codes, np.int8), np.array(at, np.int8), looks)

    one = metric((many.PASS, 0), (many.REGRESSION, 1), (many.PASS, 0), (many.PASS, 1))
    other = metric((many.HOST_SHIFT, 2), (many.PASS, 2), (many.INCONCLUSIVE, 2), (many.PASS, 0))
    probe = many.together([one, other])
    assert probe.codes.tolist() == [
        many.HOST_SHIFT,
        many.REGRESSION,
        many.INCONCLUSIVE,
        many.PASS,
    ]
    assert probe.new.tolist() == [2, 2, 2, 2]
    assert probe.controls.tolist() == [1, 0, 1, 0]
