"""Start effort: the simulated rule is the gate's own, with the mean starts of the gate's tests."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.metrics import lookup
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.noise import Noise
from perfgate.gate.rule import Rule
from perfgate.gate.sequential_test import BaselineLevel, judge
from perfgate.gate.verdict import Verdict
from perfgate.verdicts.start_effort import AnswersTest, SpeedTest, decide, expected, starts_of_probe

METRIC = lookup("tpot_mean_ms")  # lower is better: a loss is a plus on the scale
SIGMA = 0.005


def a_test(
    n_base: int = 10, margin: float = 4.0, most: int = 5, environment_sigma: float = 0.0
) -> SpeedTest:
    """As the gate makes it of a right prior; the margin in sigmas."""
    level = BaselineLevel(
        METRIC,
        centre=0.0,
        n_base=n_base,
        noise=Noise(SIGMA, 10 + n_base - 1, "prior"),
        rule=Rule(max_runs=most),
        against="baseline",
        environment_sigma=environment_sigma,
    )
    return SpeedTest(level, margin * SIGMA)


@given(
    st.lists(st.floats(-0.05, 0.05), min_size=5, max_size=5),
    st.sampled_from([1, 3, 10, 30]),
    st.sampled_from([2.0, 3.0, 4.0]),
    st.sampled_from([1, 2, 4, 5]),
    st.sampled_from([0.0, 0.03]),
)
def test_the_simulated_rule_is_the_gates(
    losses: list[float], n_base: int, margin: float, most: int, environment: float
) -> None:
    test = a_test(n_base, margin, most, environment_sigma=environment)
    judged = judge(test.level, losses, test.margin)
    decided = decide(test, np.array([losses[:most]]))
    assert bool(decided.lost[0]) == (judged.verdict == Verdict.REGRESSION)
    if judged.verdict == Verdict.INCONCLUSIVE:
        assert decided.at[0] == most
    elif judged.verdict != Verdict.IMPROVEMENT:  # asks for no further start either
        assert decided.at[0] == judged.runs_used


# As the gate's own simulation (tests/gate): baseline's runs, margin in sigma, loss, mean starts.
TABLE = [
    (3, 4, False, 1.11),
    (3, 4, True, 2.08),
    (5, 4, False, 1.07),
    (10, 2, False, 2.01),
    (10, 3, False, 1.25),
    (10, 4, False, 1.04),
    (10, 4, True, 2.01),
]


@pytest.mark.parametrize(("n_base", "margin", "slower", "starts"), TABLE)
def test_the_mean_starts_of_the_rule(
    n_base: int, margin: float, slower: bool, starts: float
) -> None:
    found = expected({"c1": [a_test(n_base, margin)]}, 5, slower=slower, trials=20_000)
    assert found.starts == pytest.approx(starts, abs=0.05)
    assert found.of_probe == {"c1": found.starts}


def test_the_same_seed_gives_the_same_plan_and_another_one_does_not() -> None:
    tests = {"c1": [a_test(margin=2.0)], "c4": [a_test(margin=2.0), a_test(margin=3.0)]}
    one = expected(tests, 5, slower=False, seed=(1, 2))
    assert one == expected(tests, 5, slower=False, seed=(1, 2))
    assert one != expected(tests, 5, slower=False, seed=(1, 3))


def test_a_campaign_makes_as_many_starts_as_its_slowest_probe() -> None:
    alone = expected({"c1": [a_test(margin=3.0)]}, 5, slower=False).starts
    tests = {f"c{point}": [a_test(margin=3.0)] for point in range(8)}
    together = expected(tests, 5, slower=False)
    assert together.starts > alone + 0.5
    assert max(together.of_probe.values()) < together.starts
    # Eight probes that each need a second start with chance p: 1 - (1 - p)^8 need one.
    assert all(one == pytest.approx(alone, abs=0.1) for one in together.of_probe.values())


def test_a_proved_regression_ends_its_probe_whatever_the_other_metrics_say() -> None:
    draw = np.random.default_rng(1)
    lost = a_test(margin=12.0)  # found by the second start, but for the misses at the band
    undecided = a_test(margin=0.5)
    starts = starts_of_probe([lost, undecided], 5, draw, slower=True)
    assert (starts == 2).mean() > 0.95
    assert starts.max() <= 5
    assert starts_of_probe([undecided], 5, draw, slower=True).mean() > 3


def test_nothing_to_judge_takes_one_start() -> None:
    assert expected({"smoke": [], "c1": []}, 5, slower=True).starts == 1.0
    assert expected({}, 5, slower=False).starts == 1.0


def test_a_test_never_asks_for_more_starts_than_it_may() -> None:
    documented = a_test(n_base=1, margin=2.0, most=2, environment_sigma=0.03)
    draw = np.random.default_rng(1)
    assert starts_of_probe([documented], 5, draw, slower=False).max() == 2
    assert starts_of_probe([a_test(margin=0.1)], 3, draw, slower=False).max() == 3


@pytest.mark.parametrize(
    ("questions", "margin", "one_is_enough"), [(1319, 0.02, 0.97), (1319, 0.01, 0.57)]
)
def test_one_evaluation_is_mostly_enough(
    questions: int, margin: float, one_is_enough: float
) -> None:
    """The rates of an unchanged build at 4 % of changed answers, as simulated for the gate."""
    found = expected({"gsm8k": [AnswersTest(questions, margin)]}, 5, slower=False, trials=20_000)
    # 0.7 % are called lost at once, which takes no second evaluation either.
    assert found.starts == pytest.approx(2 - one_is_enough, abs=0.03)


def test_the_rule_for_answers_is_the_gates() -> None:
    """Of the same changed answers, the same decision after the first evaluation."""
    questions, margin = 200, 0.05
    random = np.random.default_rng(3)
    for _ in range(200):
        changed = random.binomial(questions, 0.04)
        lost = random.binomial(changed, 0.5)
        base = {f"q{n}": n < questions // 2 for n in range(questions)}
        now = dict(base)
        for n in range(lost):
            now[f"q{n}"] = False
        for n in range(changed - lost):
            now[f"q{questions - 1 - n}"] = True
        judged = judge_paired("accuracy:a:b:c", base, [now], margin=margin)
        one = _Fixed(changed, lost)
        starts = starts_of_probe(
            [AnswersTest(questions, margin)],
            5,
            one,
            slower=False,
            trials=1,  # type: ignore[arg-type]
        )
        assert starts[0] == (2 if judged.needs_more_runs else 1)


class _Fixed:
    """Draws that are known beforehand."""

    def __init__(self, changed: int, lost: int) -> None:
        self._draws = [changed, lost]

    def binomial(self, n: object, p: float, size: object = None) -> "np.ndarray":  # type: ignore[type-arg]
        return np.array([self._draws.pop(0)])


def test_a_slower_build_takes_more_starts_the_nearer_it_is_to_the_band() -> None:
    near = expected({"c1": [a_test(margin=4.0)]}, 5, slower=True)
    assert near.starts >= 2.0 - 0.05
    assert math.isclose(near.starts, near.of_probe["c1"])
