"""Noise of one start: its quantiles, what it lets detect, and what a history tells of it."""

import math
import statistics
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_values import judge_performance
from scipy import stats
from sizes import sized
from tables import each

from benchmarks.detection.draws import SCENARIOS, Values
from perfgate.core.errors import InputError
from perfgate.core.metrics import THROUGHPUT
from perfgate.core.verdict import Verdict
from perfgate.judging.forecast.simulation import starts
from perfgate.judging.rules.noise import Sessions, learnt_noise, t_quantile, t_tail
from perfgate.judging.rules.sequential import levels

DEGREES = st.one_of(st.floats(1, 200), st.just(math.inf))
SIGMA, RHO = 0.005, 0.3

# Smallest detectable loss in sigma at alpha 0.025, beta 0.05.
MDE = {
    1: {1: 5.71, 2: 4.95, 3: 4.67, 5: 4.43},
    3: {1: 4.57, 2: 3.62, 3: 3.23, 5: 2.89},
    10: {1: 4.01, 2: 2.96, 3: 2.52, 5: 2.09},
}


@each("n_base", MDE)
def test_smallest_detectable_table(n_base: int) -> None:
    level = levels(np.zeros((1, n_base)), 1.0, between=0.0)
    for n_new, sigmas in MDE[n_base].items():
        found = level.smallest_detectable(n_new, 0.025) / level.sigma
        assert found[0] == pytest.approx(sigmas, abs=0.006)


@given(st.floats(1e-9, 1 - 1e-9), st.floats(-30, 50), DEGREES)
def test_quantile_and_tail_are_students(probability: float, t: float, dof: float) -> None:
    expected = stats.t.ppf(probability, dof)
    assert t_quantile(probability, dof) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert t_tail(t, dof) == pytest.approx(stats.t.sf(t, dof), rel=1e-9)


def test_neither_the_plugin_nor_the_gate_imports_scipy_before_it_judges() -> None:
    told = "import perfgate.suite.plugin, perfgate.judging.rules.claims, sys; print(*sys.modules)"
    argv = [sys.executable, "-c", told]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert loaded >= {"perfgate.judging.rules.noise", "perfgate.judging.rules.accuracy"}
    assert {"scipy", "numpy"}.isdisjoint(loaded)


# Both components are those of the published formula, whatever the history looks like. --------


def obvious(histories: list[Sessions], prior: float = SIGMA) -> tuple[float, float]:
    """σ² and ρ, line by line as the page on statistics has them."""
    e0, b0 = (1 - RHO) * prior**2, RHO * prior**2
    several = [sessions for sessions in histories if len(sessions) >= 2]
    w = [d for sessions in histories for session in sessions for d in steps(session)]
    g = [d for sessions in several for d in steps([statistics.median(one) for one in sessions])]
    se2 = (10 * e0 + 0.7 * clipped(w, e0)) / (10 + 0.7 * len(w))
    sb2 = b0
    if g:
        kbar = statistics.fmean(1 / len(session) for sessions in several for session in sessions)
        t0 = b0 + e0 * kbar
        st2 = (5 * t0 + 0.67 * clipped(g, t0)) / (5 + 0.67 * len(g))
        sb2 = max(st2 - se2 * kbar, 0.1 * b0)
    rho = RHO
    if len(w) >= 8 and len(g) >= 5:
        rho = min(max(sb2 / (se2 + sb2), 0.1), 0.7)
    return se2 + sb2, rho


def steps(values: Sequence[float]) -> list[float]:
    return [(values[i + 1] - values[i]) / 2**0.5 for i in range(len(values) - 1)]


def clipped(d: list[float], prior: float) -> float:
    v = prior
    if len(d) >= 5:
        v = max(prior / 4, (1.4826 * statistics.median([abs(x) for x in d])) ** 2)
    return sum(min(x**2, 6.25 * v) / 0.94 for x in d)


def is_obvious(histories: list[Sessions], prior: float = SIGMA) -> bool:
    found = learnt_noise(histories, prior)
    assert found.sigma is not None
    ours = (found.sigma**2, found.between)
    return ours == pytest.approx(obvious(histories, prior), rel=1e-9, abs=1e-15)


losses = st.floats(-0.3, 0.3).map(lambda x: round(x, 6))
sessions_of_one = st.lists(st.lists(losses, min_size=1, max_size=4), min_size=1, max_size=8)


@given(st.lists(sessions_of_one, max_size=6), st.sampled_from([0.005, 0.03, 0.08]))
def test_it_is_the_published_formula(histories: list[Sessions], prior: float) -> None:
    assert is_obvious(histories, prior)


@each("scenario", ["gauss", "session50", "real", "heavy", "old4x6"])
@each("counts", [[1] * 10, [3] * 10, [2, 1, 4, 1, 1, 2]])
def test_it_is_the_published_formula_on_noise_as_it_is(scenario: str, counts: list[int]) -> None:
    drawn = SIGMA * starts(np.random.default_rng(5), SCENARIOS[scenario], 20, 1, counts)[:, 0]
    for values in drawn:
        history = [list(map(float, one)) for one in np.split(values, np.cumsum(counts)[:-1])]
        assert is_obvious([history])


def test_the_share_between_sessions_needs_differences_of_both_kinds() -> None:
    alternating, steady = [[0.0, 0.001], [0.1, 0.101]] * 4, [[0.0, 0.1], [0.1, 0.0]] * 5
    for history, share in (
        (alternating, 0.7),
        (alternating[:5], RHO),  # five within
        ([one[:1] for one in alternating], RHO),
        (steady, 0.1),
    ):
        assert learnt_noise([history], SIGMA).between == share
    for prior in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(InputError, match="the prior noise"):
            learnt_noise([], prior)


# Noise learnt from a few nights makes the gate alarm far less than the prior does (statistics §1):
# three points of a sweep, each with a baseline of five nights, one start a night, whose numbers go
# up and down together. An alarm is any of them.

POINTS, NIGHTS = 3, 5
TRIALS = sized(500, 1500)


def speeds(losses: Values) -> list[float]:
    return [1000 * math.exp(-x) for x in losses.tolist()]


def alarms(scenario: str, factor: float, *, learnt: bool, controls: bool = True):
    """False alarms per 1,000 builds, and the share of builds of which every point passes."""
    rng = np.random.default_rng([15, int(100 * factor)])
    sigma = factor * THROUGHPUT.sigma
    base = sigma * starts(rng, SCENARIOS[scenario], TRIALS, POINTS, [1] * NIGHTS)
    session = sigma * starts(rng, SCENARIOS[scenario], TRIALS, POINTS, [8])
    lost = passed = 0
    for trial in range(TRIALS):
        histories = [[[x] for x in point] for point in base[trial].tolist()] if learnt else []
        noise = learnt_noise(histories, THROUGHPUT.sigma)
        verdicts = {
            judge_performance(
                "output_throughput",
                speeds(base[trial, point]),
                speeds(session[trial, point, :5]),
                sigma=noise.sigma,
                between=noise.between,
                sessions=NIGHTS,
                controls=speeds(session[trial, point, 5:]) if controls else None,
                policy="auto" if controls else "none",
            ).verdict
            for point in range(POINTS)
        }
        lost += Verdict.REGRESSION in verdicts
        passed += verdicts <= {Verdict.PASS, Verdict.IMPROVEMENT}
    return 1000 * lost / TRIALS, passed / TRIALS


@pytest.mark.nightly
def test_a_louder_hardware_alarms_far_less_after_five_nights() -> None:
    """With controls hardly at all."""
    prior, _ = alarms("session", 2.5, learnt=False, controls=False)
    assert prior > 100
    assert alarms("session", 2.5, learnt=True, controls=False)[0] < 0.5 * prior
    assert alarms("session", 2.5, learnt=False)[0] > 10
    assert alarms("session", 2.5, learnt=True)[0] < 15
    assert alarms("real", 2.5, learnt=True)[0] < 20


@pytest.mark.nightly
def test_a_hardware_like_the_priors_is_judged_as_before() -> None:
    for learnt, least in ((False, 0.98), (True, 0.9)):
        lost, passed = alarms("real", 1, learnt=learnt)
        assert lost < 3
        assert passed > least
