"""The paired test: many random cases against a plain writing of it, and what every use shares."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import paired_oracle as oracle
import pytest
from numpy.typing import NDArray
from rule_cases import judge_claim, statement
from sizes import sized

from perfgate.core.metrics import lookup
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules import paired, scale
from perfgate.judging.rules.claims import EarlierStarts
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import AbTest, Effect, InterleavedTest, paired_test

ROWS = 100
SPEED = lookup("output_throughput")
WIDEST = scale.margin(SPEED, 0.25)
Values = NDArray[np.float64]


def noisy(rng: np.random.Generator, sigma: float, *shape: int) -> Values:
    """Losses of unchanged starts, one in twenty far off."""
    values = sigma * rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.05, values + 6 * sigma, values)


def verdicts(found: paired.Look) -> list[str]:
    return np.select([found.holds, found.fails], ["PASS", "REGRESSION"], "INCONCLUSIVE").tolist()


def agree(found: paired.Look, expected: list[tuple[str, int, float]], seen: Counter[str]) -> None:
    """Verdict, number of starts and band of every case."""
    rows = zip(verdicts(found), found.starts.tolist(), found.upper.tolist(), strict=True)
    for row, plain in zip(rows, expected, strict=True):
        assert row == (*plain[:2], pytest.approx(plain[2], rel=1e-9))
        seen[row[0]] += 1


@pytest.mark.nightly
@pytest.mark.parametrize("own", [False, True])
def test_two_builds(own: bool) -> None:
    rng, seen = np.random.default_rng(15 + own), Counter[str]()
    for _ in range(sized(20, 200)):
        sigma, between = float(rng.choice([0.005, 0.02, 0.06])), float(rng.choice([0.0, 0.3, 0.5]))
        rule = (
            paired.OWN_NOISE_RULE if own else replace(paired.AB_RULE, sigma=sigma, between=between)
        )
        a, made = noisy(rng, sigma, ROWS, 6), int(rng.integers(1, 8))
        b = noisy(rng, sigma * rng.choice([0.8, 3]), ROWS, made)
        b += sigma * rng.choice([0, 0.5, 1, 2, 4, 9], (ROWS, 1))
        band = float(rng.choice([2, 4])) * sigma
        noise = (0.03, 0.0) if own else (sigma, between)
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        expected = [oracle.ab(x, y, band, *noise, own) for x, y in pairs]
        agree(paired_test(a, b, Effect.below_band(band), rule), expected, seen)
    assert min(seen.values()) > ROWS, seen


@pytest.mark.nightly
def test_a_reference_in_turns() -> None:
    rng, seen = np.random.default_rng(9), Counter[str]()
    for _ in range(sized(20, 200)):
        most, made = int(rng.integers(1, 9)), int(rng.integers(3, 9))
        sigma = float(rng.choice([0.005, 0.02, 0.06, 0.13]))
        earlier = [noisy(rng, sigma, int(rng.integers(0, 7))).tolist() for _ in range(made - 3)]
        references, rule = noisy(rng, sigma, ROWS, made), paired.rule_for(most)
        starts = max(1, most - int(rng.choice([0, 0, 1, 3])))
        new = noisy(rng, sigma * rng.choice([1, 3]), ROWS, starts)
        new += sigma * rng.choice([0, 1, 3, 6, 15], (ROWS, 1))
        band = float(rng.choice([0.02, 0.05, 0.2]))
        pairs = zip(references.tolist(), new.tolist(), strict=True)
        expected = [oracle.in_turns(*one, band, earlier, rule.looks, WIDEST) for one in pairs]
        effect = Effect.below_band(band, WIDEST)
        agree(
            paired_test(references, new, effect, paired.with_history(rule, earlier)), expected, seen
        )
    assert min(seen.values()) > ROWS, seen


def below(edge: float, **fields: Any) -> tuple[dict[str, Any], Any, Any]:
    """Fields of a `Claim`, and when the claim holds and fails, of d, L and U."""
    return fields, lambda d, low, up: up < edge, lambda d, low, up: low > edge


G, LOSS = math.log(1.05), -math.log(0.95)
MARGIN, TOLERANCE = {"margin": 0.05}, {"tolerance": 0.05}
CLAIMS = [
    below(0, expect="better"),
    below(LOSS, expect="not_worse", **MARGIN),
    below(LOSS - math.log(1.076), expect="better", documented=0.076, **TOLERANCE),
    below(LOSS - math.log(0.8), expect="worse", documented=-0.2, **TOLERANCE),
    ({"expect": "not_better", **MARGIN}, lambda d, low, up: low > -G, lambda d, low, up: up < -G),
    (
        {"expect": "better", "minimum_effect": 0.05},
        lambda d, low, up: up < 0 and d <= -G / 2,
        lambda d, low, up: low > -G,
    ),
]


@pytest.mark.nightly
def test_claims() -> None:
    """Both sides measured now, one side a baseline, or a number; the machine's own noise."""
    rng, seen = np.random.default_rng(16), Counter[str]()
    for _ in range(sized(3_000, 50_000)):
        fields, holds, fails = CLAIMS[rng.integers(len(CLAIMS))]
        arguments = dict(fields)
        own, sigma = bool(rng.random() < 0.3), float(rng.choice([0.005, 0.02, 0.06]))
        new = noisy(rng, sigma * rng.choice([1, 3]), int(rng.integers(1, 8)))
        new = (new + rng.choice([-0.25, -0.1, -0.05, 0, 0.05, 0.25])).tolist()
        other = noisy(rng, sigma, int(rng.integers(1, 8))).tolist()
        baseline = ["new", "other"][rng.integers(2)], int(rng.integers(1, 6))
        earlier, kind, plain = None, rng.integers(3), {"sigma": sigma, "own": own}
        sized_ = "documented" in arguments
        if kind == 0 and not sized_ and "minimum_effect" not in arguments:
            plain |= {"number": 0.0}
            arguments["value"] = 1000.0
        elif kind == 1:
            plain |= {"baseline": baseline, "each": True}
            earlier = EarlierStarts(*baseline)
        plain["each"] = "number" not in plain and (
            own or sized_ or earlier or arguments["expect"] == "not_better"
        )
        versus = () if "value" in arguments else [1000 * math.exp(-x) for x in other]
        values, noise = [1000 * math.exp(-x) for x in new], {"own_noise": own, "sigma": sigma}
        judged = judge_claim(
            statement(SPEED.name, **arguments), values, versus, earlier=earlier, **noise
        )
        expected = oracle.claim(new, other, holds, fails, **plain)
        assert (judged.verdict.value, judged.runs_used) == expected, (arguments, new, other)
        seen[judged.verdict.value] += 1
    assert min(seen.values()) > 100, seen


def test_a_case_alone_is_the_case_among_many() -> None:
    rng = np.random.default_rng(3)
    a, b = noisy(rng, 0.02, 4, 50, 6), noisy(rng, 0.03, 50, 6)
    for rule in (replace(paired.AB_RULE, sigma=0.02), paired.OWN_NOISE_RULE, paired.rule_for(6)):
        many = paired_test(a, b, Effect.below_band(0.03, WIDEST), rule)
        for case in np.ndindex(4, 50):
            alone = paired_test(a[case], b[case[1]], Effect.below_band(0.03, WIDEST), rule)
            assert alone == pytest.approx([field[case] for field in many])
            assert isinstance(alone.verdict, Verdict)
            assert {type(field) for field in alone} == {int, float, bool}


def test_starts_one_by_one_end_as_all_at_once() -> None:
    rng = np.random.default_rng(5)
    references, new = noisy(rng, 0.03, 300, 8), noisy(rng, 0.06, 300, 8)
    rule, effect = paired.rule_for(8), Effect.below_band(0.05, WIDEST)
    whole = paired_test(references, new, effect, rule)
    for count in range(1, 9):
        found = paired_test(references, new[:, :count], effect, rule)
        done = whole.starts <= count
        assert (found.holds[done] == whole.holds[done]).all()
        assert (found.fails[done] == whole.fails[done]).all()
        assert not (found.holds | found.fails)[~done].any()


def judged(references: list[float], new: list[float], *, in_blocks: bool = True) -> Judgement:
    """Of throughputs, the reference's and the new build's start by start."""
    most = 6
    test = InterleavedTest("output_throughput", None, references, new, (), most, in_blocks)
    return test.judge()


# The machine has a good and a bad hour; both builds were up in each.
HOURS = [100.0, 71.0, 102.0, 69.0]


def test_builds_that_are_up_together_are_compared_start_by_start() -> None:
    new = [one * factor for one, factor in zip(HOURS, (1.01, 0.99, 1.0, 1.01), strict=True)]
    found = judged(HOURS, new)
    assert (found.verdict, found.runs_used) == (Verdict.PASS, 4)
    assert found.band is not None
    assert found.band < 0.07
    assert found.baseline == pytest.approx(np.exp(np.mean(np.log(HOURS))))
    assert judged(HOURS, new, in_blocks=False).verdict == Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ((0.90, 0.89, 0.91, 0.90), Verdict.REGRESSION),
        ((1.11, 1.10, 1.12, 1.11), Verdict.IMPROVEMENT),
        ((0.6, 1.5, 0.7, 1.4), Verdict.INCONCLUSIVE),  # nothing can be told on such a machine
        ((0.90, 0.89, 0.91), Verdict.INCONCLUSIVE),  # before the first look
    ],
)
def test_what_pairs_of_starts_prove(factors: tuple[float, ...], verdict: Verdict) -> None:
    hours = HOURS[: len(factors)]
    new = [one * factor for one, factor in zip(hours, factors, strict=True)]
    found = judged(hours, new)
    assert found.verdict == verdict
    compared = AbTest(SPEED.name, hours, new, None, RunNoise(widen=True), in_blocks=True)
    of_two = compared.judge()
    assert of_two.verdict == verdict
    assert (of_two.baseline, of_two.change) == pytest.approx((found.baseline, found.change))
    assert found.needs_more_runs == (len(factors) < 4)


def test_the_spread_within_and_between_starts_both_widen_what_can_be_shown() -> None:
    """Errors of whole sessions: benchmarks/blocks.py."""
    rng, effect = np.random.default_rng(7), Effect.below_band(0.02, WIDEST)

    def shown(between: float, within: float) -> float:
        starts = between * rng.standard_normal((2000, 4))
        blocks = within * rng.standard_normal((2000, 4, 5))
        losses = starts + blocks.mean(axis=-1)
        seen = paired_test(np.zeros(4), losses, effect, paired.blocks_rule(6))
        assert seen.fails.mean() < 0.01
        return float(np.median(seen.upper))

    assert shown(0.0, 0.0) < shown(0.02, 0.0) < shown(0.02, 0.09)
