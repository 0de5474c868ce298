"""Claims with a documented size, and what only has a direction: limits, both sides' spread."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import stdtrit
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.rules.claims import EarlierStarts, judge_accuracy_claim, judge_claim

TOTAL = "total_token_throughput"
SIGMA = 0.005
BASELINE = EarlierStarts("other", 3)


def gain(new: float, *, documented: float = 0.21, tolerance: float = 0.05) -> Judgement:
    return judge_claim(
        TOTAL, "better", [new] * 3, [1000.0] * 3, documented=documented, tolerance=tolerance
    )


@each(
    ("new", "verdict", "words"),
    [
        pytest.param(1210, Verdict.PASS, "the claim holds: +21.0 %", id="as documented"),
        pytest.param(1800, Verdict.PASS, "direction and size", id="far better"),
        pytest.param(1149.5, Verdict.INCONCLUSIVE, "its direction holds", id="at the limit"),
        pytest.param(1050, Verdict.REGRESSION, "its size does not hold", id="the direction alone"),
        pytest.param(1000, Verdict.REGRESSION, "its direction is not proved", id="no gain"),
        pytest.param(950, Verdict.REGRESSION, "the direction is the opposite", id="a loss"),
    ],
)
def test_a_gain_of_a_documented_size(new: float, verdict: Verdict, words: str) -> None:
    judged = gain(new)
    assert judged.verdict == verdict
    assert words in judged.reason
    assert "documented +21.0 %, limit +14.9 % with our tolerance of 5 %" in judged.reason
    assert (judged.band, judged.against) == (0.05, "claim")


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (1018, Verdict.PASS),
        (1000, Verdict.INCONCLUSIVE),
        (980, Verdict.REGRESSION),
    ],
)
def test_a_tolerance_larger_than_the_size_leaves_the_direction(
    new: float, verdict: Verdict
) -> None:
    judged = gain(new, documented=0.018)
    assert judged.verdict == verdict
    assert "documented +1.8 %, less than our tolerance of 5 %: the direction" in judged.reason


@pytest.mark.parametrize(
    ("new", "verdict", "note"),
    [
        pytest.param(304.71, Verdict.PASS, "the cost that the document warns of shows", id="as is"),
        pytest.param(200.0, Verdict.PASS, "there is no cost here, but a gain", id="a gain"),
        pytest.param(365.6, Verdict.INCONCLUSIVE, "shows", id="at the limit"),
        pytest.param(400.0, Verdict.REGRESSION, "shows", id="more than documented"),
    ],
)
def test_a_documented_cost_may_be_missing_and_not_larger(
    new: float, verdict: Verdict, note: str
) -> None:
    judged = judge_claim(
        "tpot_mean_ms", "worse", [new] * 3, [227.45] * 3, documented=0.3397, tolerance=0.2
    )
    assert judged.verdict == verdict
    assert note in judged.notes[0]
    assert "documented +34.0 %, limit +60.8 % with our tolerance of 20 %" in judged.reason


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        pytest.param(310, Verdict.PASS, id="a loss"),
        pytest.param(1000, Verdict.PASS, id="equal"),
        pytest.param(1020, Verdict.INCONCLUSIVE, id="at the margin"),
        pytest.param(1050, Verdict.REGRESSION, id="a gain"),
    ],
)
def test_what_does_not_help_is_red_where_it_does(new: float, verdict: Verdict) -> None:
    judged = judge_claim(TOTAL, "not_better", [new] * 3, [1000.0] * 3, documented=-0.69)
    assert (judged.verdict, judged.band) == (verdict, 0.02)
    assert judged.notes == ("documented: -69.0 %",)


@each("metric", sorted(METRICS))
def test_not_better_mirrors_not_worse(metric: str) -> None:
    one, other = [0.40, 0.41, 0.405], [0.40, 0.40, 0.41]
    for factor in (0.5, 1.0, 2.0):
        ours = [factor * value for value in one]
        better = judge_claim(metric, "not_better", ours, other, margin=0.2).verdict
        higher = METRICS[metric].direction == "higher"
        expected = {0.5: not higher, 2.0: higher}.get(factor, False)
        assert better == (Verdict.REGRESSION if expected else Verdict.PASS)


@pytest.mark.parametrize(("right", "verdict"), [(950, "PASS"), (999, "REGRESSION")])
def test_a_score_that_is_not_better(right: int, verdict: str) -> None:
    judged = judge_accuracy_claim(
        "accuracy:gsm8k:exact_match:flexible-extract",
        "not_better",
        [{f"q{number}": number < right for number in range(1000)}],
        [{f"q{number}": number < 950 for number in range(1000)}],
        margin=0.02,
    )
    assert judged.verdict == verdict


def test_the_bounds_by_hand() -> None:
    """Each side with its own spread; that of a baseline with what a session has in common."""
    new, other = [1003.0, 1000.0, 997.0], [1000.0] * 3
    x = [-math.log(one) for one in new]
    mean = sum(x) / 3
    squares = sum((one - mean) ** 2 for one in x)
    prior = 10 * 0.7 * SIGMA**2
    quiet = prior / 12
    noisy = max((prior + squares) / 12, squares / 2)
    for earlier, shared in ((None, 0.0), (BASELINE, 0.3 * SIGMA**2 * (1 + 1 / 3))):
        judged = judge_claim(
            TOTAL, "better", new, other, documented=0.1, tolerance=0.05, earlier=earlier
        )
        reach = float(stdtrit(12, 0.998)) * math.sqrt(noisy / 3 + quiet / 3 + shared)
        loss = mean + math.log(1000)
        assert judged.interval == pytest.approx(
            (math.expm1(-loss - reach), math.expm1(-loss + reach)), abs=1e-7
        )


def test_a_baseline_is_used_whole_and_must_have_three_starts() -> None:
    def judged(baseline: int, now: int) -> Judgement:
        return judge_claim(
            TOTAL, "better", [1100.0] * now, [1000.0] * baseline, earlier=EarlierStarts("other", 2)
        )

    few = judged(2, 6)
    assert (few.verdict, few.needs_more_runs) == (Verdict.INCONCLUSIVE, False)
    assert "the baseline has 2 fresh starts, at least 3 a side decide" in few.reason
    assert judged(9, 2).needs_more_runs
    held = judged(9, 3)
    assert held.verdict == Verdict.PASS
    assert held.reason.endswith("; 3 fresh starts against 9 of the baseline")


def test_a_machine_that_measures_its_noise_decides_from_four_pairs_on() -> None:
    def judged(new: list[float], other: list[float]) -> Judgement:
        return judge_claim(TOTAL, "not_worse", new, other, margin=0.05, own_noise=True)

    assert judged([2000.0] * 3, [1000.0] * 3).verdict == Verdict.INCONCLUSIVE
    assert judged([2000.0] * 4, [1000.0] * 4).verdict == Verdict.PASS
    assert judged([700.0] * 4, [1000.0] * 4).verdict == Verdict.REGRESSION
    near = judged([1000.0] * 6, [1000.0] * 6)
    assert (near.verdict, near.needs_more_runs) == (Verdict.PASS, False)
    noisy = [900.0, 1100.0, 950.0, 1050.0, 920.0, 1080.0]
    assert judged(noisy, noisy[::-1]).verdict == Verdict.INCONCLUSIVE


@each(
    "changes",
    [
        {"documented": 0.0, "tolerance": 0.05},
        {"documented": -1.0, "tolerance": 0.05},
        {"documented": math.nan, "tolerance": 0.05},
        {"documented": 0.1, "tolerance": 1.0},
        {"documented": 0.1, "tolerance": math.nan},
        {"documented": 0.1},
        {"documented": -0.1, "tolerance": 0.05},
        {"documented": 0.1, "tolerance": 0.05, "minimum_effect": 0.05},
        {"tolerance": 0.05},
        {"minimum_effect": 1.0},
        {"minimum_effect": math.nan},
        {"expect": "not_worse", "margin": 1.0},
        {"expect": "worse", "documented": 0.1, "tolerance": 0.05},
        {"expect": "not_better", "documented": -0.1, "tolerance": 0.05},
    ],
)
def test_sizes_without_meaning(changes: dict[str, object]) -> None:
    arguments = {"expect": "better", "new": [1.0], "versus": [1.0], **changes}
    with pytest.raises(InputError):
        judge_claim(TOTAL, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the documented size says nothing"):
        judge_claim(TOTAL, "better", [1.0], value=1.0, documented=0.1, tolerance=0.1)


def ends(true: float, *, sessions: int = 0, trials: int = 400) -> Counter[str]:
    """Verdicts of +7.6 % with a tolerance of 5 % at a true gain, on noise like that of engines."""
    counts = [12] if not sessions else [6] + [1] * sessions
    kind = "heavy" if not sessions else "real"
    drawn = starts(np.random.default_rng([16, 4]), kind, trials, 1, counts)[:, 0].astype(float)
    found: Counter[str] = Counter()
    for losses in (SIGMA * drawn).tolist():
        judged = judge_claim(
            TOTAL,
            "better",
            [1000 * (1 + true) * math.exp(-x) for x in losses[:6]],
            [1000 * math.exp(-x) for x in losses[6:]],
            documented=0.076,
            tolerance=0.05,
            earlier=EarlierStarts("other", sessions) if sessions else None,
        )
        found[judged.verdict.value] += 1
    return found


LIMIT = 1.076 * 0.95 - 1


@pytest.mark.parametrize("sessions", [0, 10])
def test_the_error_rates_of_the_size(sessions: int) -> None:
    """At the limit neither is said but by error; the documented gain holds, and none fails."""
    trials = 400
    at = ends(LIMIT, sessions=sessions)
    assert at["PASS"] <= 0.015 * trials
    assert at["REGRESSION"] <= 0.03 * trials
    assert ends(0.076, sessions=sessions)["PASS"] >= 0.985 * trials
    assert ends(0.0, sessions=sessions)["REGRESSION"] >= 0.97 * trials


def test_a_documented_cost_is_decided_by_three_starts_a_side() -> None:
    early = judge_claim(TOTAL, "worse", [900.0], [1000.0], documented=-0.1, tolerance=0.05)
    assert (early.verdict, early.needs_more_runs) == (Verdict.INCONCLUSIVE, True)


def test_a_baseline_may_be_the_side_that_the_claim_speaks_of() -> None:
    earlier = EarlierStarts("new", 5)
    judged = judge_claim(TOTAL, "better", [1100.0] * 5, [1000.0] * 3, earlier=earlier)
    assert (judged.verdict, judged.runs_used) == (Verdict.PASS, 3)
    assert judged.measured == pytest.approx(1100)
