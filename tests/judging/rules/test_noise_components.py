"""Noise components are those of the published formula, whatever the history looks like."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each

from perfgate.core.errors import InputError
from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.rules.noise import NoiseComponents, Sessions, noise_components

SIGMA = 0.005
RHO = 0.3


def obvious(histories: list[Sessions], prior: float = SIGMA) -> tuple[float, float, float]:
    """σ², sb² and ρ, line by line as the page on statistics has them."""
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
    return se2 + sb2, sb2, rho


def steps(values: Sequence[float]) -> list[float]:
    return [(values[i + 1] - values[i]) / 2**0.5 for i in range(len(values) - 1)]


def clipped(d: list[float], prior: float) -> float:
    v = prior
    if len(d) >= 5:
        v = max(prior / 4, (1.4826 * statistics.median([abs(x) for x in d])) ** 2)
    return sum(min(x**2, 6.25 * v) / 0.94 for x in d)


def same(found: NoiseComponents, expected: tuple[float, float, float]) -> bool:
    ours = (found.sigma**2, found.session**2, found.between)
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-15) for a, b in zip(ours, expected, strict=True)
    )


losses = st.floats(-0.3, 0.3).map(lambda x: round(x, 6))
sessions_of_one = st.lists(st.lists(losses, min_size=1, max_size=4), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(sessions_of_one, max_size=6), st.sampled_from([0.005, 0.03, 0.08]))
def test_it_is_the_published_formula(histories: list[Sessions], prior: float) -> None:
    assert same(noise_components(histories, prior), obvious(histories, prior))


@each("scenario", ["gauss", "session50", "real", "heavy", "old4x6"])
@each("counts", [[1] * 10, [3] * 10, [2, 1, 4, 1, 1, 2]])
def test_it_is_the_published_formula_on_noise_as_it_is(scenario: str, counts: list[int]) -> None:
    drawn = SIGMA * starts(np.random.default_rng(5), scenario, 20, 1, counts)[:, 0]
    for values in drawn:
        history = [list(map(float, one)) for one in np.split(values, np.cumsum(counts)[:-1])]
        assert same(noise_components([history], SIGMA), obvious([history]))


def test_without_any_history_it_is_the_prior() -> None:
    nothing: list[list[list[list[float]]]] = [[], [[]], [[[]]], [[[0.1]]], [[[0.1]], [[0.2]]]]
    for histories in nothing:
        found = noise_components(histories, SIGMA)
        assert found.sigma == pytest.approx(SIGMA)
        assert found.between == RHO
        assert not found.has_history


def test_the_share_between_sessions_needs_differences_of_both_kinds() -> None:
    alternating = [[0.0, 0.001], [0.1, 0.101]] * 4
    assert noise_components([alternating], SIGMA).between == 0.7
    assert noise_components([alternating[:5]], SIGMA).between == RHO  # five within
    assert noise_components([[one[:1] for one in alternating]], SIGMA).between == RHO
    steady = [[0.0, 0.1], [0.1, 0.0]] * 5
    assert noise_components([steady], SIGMA).between == 0.1


@pytest.mark.parametrize("prior", [0.0, -1.0, 1.5, math.nan])
def test_a_prior_that_is_none_is_refused(prior: float) -> None:
    with pytest.raises(InputError, match="the prior noise"):
        noise_components([], prior)
