"""Noise of one run: when it cannot be known, what it lets detect, and its quantiles."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_values import judge_performance
from scipy import stats
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.rule import Rule
from perfgate.judging.rules.noise import t_quantile, t_tail
from perfgate.judging.rules.sequential import levels

DEGREES = st.one_of(st.floats(1, 200), st.just(math.inf))


def test_two_values_measure_no_noise() -> None:
    with pytest.raises(InputError, match="at most 2 runs"):
        judge_performance("output_throughput", [1.0, 2.0], [1.0], rule=Rule(prior_dof=0))


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


@given(st.floats(1e-9, 1 - 1e-9), DEGREES)
def test_the_quantile_is_students(probability: float, dof: float) -> None:
    expected = stats.t.ppf(probability, dof)
    assert t_quantile(probability, dof) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(st.floats(-30, 50), DEGREES)
def test_the_tail_is_students(t: float, dof: float) -> None:
    assert t_tail(t, dof) == pytest.approx(stats.t.sf(t, dof), rel=1e-9)


def test_neither_the_plugin_nor_the_gate_imports_scipy_before_it_judges() -> None:
    told = "import perfgate.suite.plugin, perfgate.judging.rules.claims, sys; print(*sys.modules)"
    argv = [sys.executable, "-c", told]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert {"perfgate.judging.rules.noise", "perfgate.judging.rules.accuracy"} <= set(
        done.stdout.split()
    )
    assert {"scipy", "numpy"}.isdisjoint(done.stdout.split())
