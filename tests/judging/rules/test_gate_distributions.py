"""The gate's distributions are those of scipy, imported only when one of them is needed."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfgate.judging.rules import distributions

PROBABILITIES = st.floats(1e-9, 1 - 1e-9)
DEGREES = st.floats(1, 200)


@given(PROBABILITIES)
def test_the_normal_quantile(probability: float) -> None:
    expected = stats.norm.ppf(probability)
    assert distributions.normal_quantile(probability) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.floats(-30, 8))
def test_the_normal_share_far_into_the_tail(z: float) -> None:
    assert distributions.normal_share(z) == pytest.approx(stats.norm.cdf(z), rel=1e-9, abs=0)


@given(PROBABILITIES, DEGREES)
def test_students_quantile(probability: float, dof: float) -> None:
    expected = stats.t.ppf(probability, dof)
    found = distributions.student_quantile(probability, dof)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(st.floats(-50, 50), DEGREES)
def test_students_share(t: float, dof: float) -> None:
    expected = stats.t.cdf(t, dof)
    assert distributions.student_share(t, dof) == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 200), st.integers(0, 200))
def test_the_beta_share_is_a_binomial_tail(least: int, more: int) -> None:
    """P(at least `least` heads in `least + more` throws of a coin)."""
    expected = stats.binom.sf(least - 1, least + more, 0.5)
    found = distributions.beta_share(least, more + 1, 0.5)
    assert found == pytest.approx(expected, rel=1e-9)


def test_neither_the_plugin_nor_the_gate_imports_scipy_before_it_judges() -> None:
    told = "import perfgate.suite.plugin, perfgate.judging.rules.claims, sys; print(*sys.modules)"
    argv = [sys.executable, "-c", told]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert {"perfgate.judging.rules.noise", "perfgate.judging.rules.accuracy"} <= set(
        done.stdout.split()
    )
    assert {"scipy", "numpy"}.isdisjoint(done.stdout.split())
