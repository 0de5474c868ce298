"""The error rates of docs/reference/verdicts.md, reproduced by simulation with fixed seeds."""

from collections import Counter

import numpy as np
import pytest
from numpy.random import Generator
from sizes import sized

from perfgate.gate.accuracy import judge_paired
from perfgate.gate.multiplicity import holm
from perfgate.gate.rule import Rule, judge_performance
from perfgate.gate.verdict import Judgement, Verdict, worst

# Under coverage these take four times as long; other tests reach every line that they do.
pytestmark = [pytest.mark.slow, pytest.mark.no_cover, pytest.mark.nightly]

TRIALS = sized(500, 2000)
SIGMA = 0.005

Values = dict[str, tuple[list[float], list[float]]]


def deviation(percent: float, trials: int = TRIALS) -> float:
    """Four standard errors of a simulated percentage, and half a point for rounding."""
    share = percent / 100
    return 400 * float(np.sqrt(max(share * (1 - share), 1 / trials) / trials)) + 0.1


def throughputs(
    random: Generator, count: int, sigma: float, loss: float = 0.0, outliers: float = 0.0
) -> list[float]:
    """Runs with Gaussian noise, a share of which is slower by six sigma."""
    slow = 6 * (random.random(count) < outliers) if outliers else 0.0
    return list(1000 * np.exp(-loss - sigma * (random.standard_normal(count) + slow)))


# alpha, runs of the baseline, margin in sigma, true loss in margins → REGRESSION %, PASS %, runs
TABLE = [
    (0.025, 3, 4, 0.0, 0.47, 99.5, 1.11),
    (0.025, 3, 4, 1.0, 96.7, 3.2, 2.08),
    (0.025, 5, 4, 0.0, 0.17, 99.8, 1.07),
    (0.025, 5, 4, 1.0, 96.5, 3.5, 2.04),
    (0.025, 10, 2, 0.0, 2.5, 95.0, 2.01),
    (0.025, 10, 3, 0.0, 0.75, 99.3, 1.25),
    (0.025, 10, 4, 0.0, 0.06, 99.9, 1.04),
    (0.025, 10, 4, 1.0, 96.0, 4.0, 2.01),
    (0.025, 10, 4, 1.5, 100.0, 0.0, 2.00),
    (0.005, 10, 4, 0.0, 0.01, 100.0, 1.04),
    (0.005, 10, 4, 1.0, 95.7, 4.3, 2.13),
]


@pytest.mark.parametrize(("alpha", "n_base", "margin", "loss", "fails", "passes", "starts"), TABLE)
def test_error_rates_of_the_rule(
    alpha: float,
    n_base: int,
    margin: float,
    loss: float,
    fails: float,
    passes: float,
    starts: float,
) -> None:
    random = np.random.default_rng(20)
    delta = margin * SIGMA
    seen: Counter[Verdict] = Counter()
    used = 0
    for _ in range(TRIALS):
        judged = judge_performance(
            "output_throughput",
            throughputs(random, n_base, SIGMA),
            throughputs(random, 5, SIGMA, loss * delta),
            band=-float(np.expm1(-delta)),
            rule=Rule(alpha=alpha),
        )
        improved = judged.verdict == Verdict.IMPROVEMENT
        seen[Verdict.PASS if improved else judged.verdict] += 1
        used += 1 if improved else judged.runs_used
    assert 100 * seen[Verdict.REGRESSION] / TRIALS == pytest.approx(fails, abs=deviation(fails))
    assert 100 * seen[Verdict.PASS] / TRIALS == pytest.approx(passes, abs=deviation(passes))
    assert used / TRIALS == pytest.approx(starts, abs=0.06)


# true loss in margins → REGRESSION %, PASS %, runs; ten baseline runs, a band of four sigma
OUTLIERS = [(0.0, 0.63, 99.3, 1.13), (1.0, 95.8, 3.8, 2.11), (1.5, 100.0, 0.0, 2.01)]


@pytest.mark.parametrize(("loss", "fails", "passes", "starts"), OUTLIERS)
def test_error_rates_with_slow_outliers(
    loss: float, fails: float, passes: float, starts: float
) -> None:
    """4 % of all runs, of the baseline too, are six sigma slower."""
    random = np.random.default_rng(25)
    seen: Counter[Verdict] = Counter()
    used = 0
    for _ in range(TRIALS):
        judged = judge_performance(
            "output_throughput",
            throughputs(random, 10, SIGMA, outliers=0.04),
            throughputs(random, 5, SIGMA, loss * 4 * SIGMA, outliers=0.04),
            band=-float(np.expm1(-4 * SIGMA)),
        )
        improved = judged.verdict == Verdict.IMPROVEMENT
        seen[Verdict.PASS if improved else judged.verdict] += 1
        used += 1 if improved else judged.runs_used
    assert 100 * seen[Verdict.REGRESSION] / TRIALS == pytest.approx(fails, abs=deviation(fails))
    assert 100 * seen[Verdict.PASS] / TRIALS == pytest.approx(passes, abs=deviation(passes))
    assert used / TRIALS == pytest.approx(starts, abs=0.06)


def test_metrics_judged_together_raise_no_more_false_alarms_than_one() -> None:
    """Holm at its worst: four independent metrics, noise that leaves every look open (a band of
    two sigma). One metric alone gives 2.5 %, four at the full rate 8 to 9 %."""
    random = np.random.default_rng(26)
    band = -float(np.expm1(-2 * SIGMA))
    names = ["request_throughput", "output_throughput", "total_token_throughput",
             "output_throughput_per_gpu"]  # fmt: skip
    alarms = unshared = 0
    for _ in range(TRIALS // 2):
        values = {
            name: (throughputs(random, 10, SIGMA), throughputs(random, 5, SIGMA)) for name in names
        }

        def judge(name: str, alpha: float, values: Values = values) -> Judgement:
            return judge_performance(name, *values[name], band=band, rule=Rule(alpha=alpha))

        alarms += any(
            one.verdict == Verdict.REGRESSION for one in holm(names, judge, 0.025).values()
        )
        unshared += any(judge(name, 0.025).verdict == Verdict.REGRESSION for name in names)
    assert 100 * alarms / (TRIALS // 2) < 2.5 + deviation(2.5, TRIALS // 2)
    assert unshared > 2 * alarms


@pytest.mark.parametrize("sigma", [0.02, 0.06, 0.13])
@pytest.mark.parametrize(("n_base", "max_runs"), [(5, 4), (4, 3)])
def test_error_rates_on_a_machine_of_unknown_noise(
    sigma: float, n_base: int, max_runs: int
) -> None:
    """Four strongly correlated metrics judged together: an unchanged build passes, and a loss of
    twice the band is found in each metric."""
    random = np.random.default_rng(21)
    trials, metrics = 600, 4
    rule = Rule(max_runs=max_runs)
    together: Counter[Verdict] = Counter()
    found = 0
    for _ in range(trials):
        common = random.standard_normal((n_base + max_runs, 1))
        own = random.standard_normal((n_base + max_runs, metrics))
        values = 1000 * np.exp(sigma * (np.sqrt(0.9) * common + np.sqrt(0.1) * own))
        judged = [
            judge_performance("output_throughput", base, new, rule=rule, measured_noise=True)
            for base, new in zip(values[:n_base].T, values[n_base:].T, strict=True)
        ]
        together[worst(one.verdict for one in judged)] += 1
        band = judged[0].band
        assert band is not None
        twice = values[n_base:, 0] * (1 - band) ** 2
        slowed = judge_performance(
            "output_throughput", values[:n_base, 0], twice, rule=rule, measured_noise=True
        )
        found += slowed.verdict == Verdict.REGRESSION
    passed = together[Verdict.PASS] + together[Verdict.IMPROVEMENT]
    assert passed / trials >= 0.98
    assert together[Verdict.REGRESSION] / trials <= 0.005
    assert found / trials >= 0.99


# margin, share of answers that differ, true drop → REGRESSION %, PASS % of one evaluation
ANSWERS = [
    (0.02, 0.02, 0.00, 0.0, 100.0),
    (0.02, 0.02, 0.02, 93.0, 6.8),
    (0.02, 0.04, 0.00, 0.7, 97.0),
    (0.02, 0.04, 0.02, 90.0, 5.5),
    (0.03, 0.08, 0.00, 0.7, 98.0),
    (0.01, 0.04, 0.01, 26.0, 5.3),
]


@pytest.mark.parametrize(("margin", "differ", "drop", "fails", "passes"), ANSWERS)
def test_error_rates_of_paired_answers(
    margin: float, differ: float, drop: float, fails: float, passes: float
) -> None:
    random = np.random.default_rng(22)
    trials, questions = 600, 1319
    share_lost, share_gained = (differ + drop) / 2, (differ - drop) / 2
    keys = [str(number) for number in range(questions)]
    seen: Counter[Verdict] = Counter()
    for _ in range(trials):
        lost, gained, _ = random.multinomial(
            questions, [share_lost, share_gained, 1 - share_lost - share_gained]
        )
        right = np.arange(questions) < 1200
        now = right.copy()
        now[:lost] = False
        now[1200 : 1200 + gained] = True
        judged = judge_paired(
            "accuracy:gsm8k:exact_match:strict-match",
            dict(zip(keys, right.tolist(), strict=True)),
            [dict(zip(keys, now.tolist(), strict=True))],
            margin=margin,
        )
        seen[judged.verdict] += 1
    assert 100 * seen[Verdict.REGRESSION] / trials == pytest.approx(
        fails, abs=deviation(fails, trials) + 1
    )
    assert 100 * seen[Verdict.PASS] / trials == pytest.approx(
        passes, abs=deviation(passes, trials) + 1
    )


def test_a_repeated_evaluation_raises_no_false_alarms() -> None:
    """One in twelve questions is answered right by chance of one half, so 4 % differ between any
    two evaluations of the same build; all are compared with one and the same baseline."""
    random = np.random.default_rng(23)
    trials, unstable = 1500, 106
    keys = [str(number) for number in range(1319)]
    steady = [True] * (1319 - unstable)
    seen: Counter[Verdict] = Counter()
    for _ in range(trials):
        base, *new = (
            dict(zip(keys, [*steady, *(random.random(unstable) < 0.5).tolist()], strict=True))
            for _ in range(3)
        )
        judged = judge_paired("accuracy:gsm8k:exact_match:strict-match", base, new, margin=0.01)
        seen[judged.verdict] += 1
    assert seen[Verdict.REGRESSION] / trials < 0.02
