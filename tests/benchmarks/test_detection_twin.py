"""The numpy twin says what the gate says, case by case, and the simulation counts it right."""

import numpy as np
import pytest
from sizes import sized

from benchmarks.detection.draws import noise, throughputs
from benchmarks.detection.error_rates import (
    Cell,
    by_gate,
    by_twin,
    disagreements,
    grid,
    row,
    standard_error,
)
from benchmarks.detection.twin import CODES, Outcomes, judge_many
from perfgate.gate.performance import judge_performance
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Verdict


@pytest.mark.nightly
def test_the_twin_equals_the_gate_in_every_cell_of_the_grid() -> None:
    cells = list(grid())
    assert len(cells) == 720
    assert disagreements(cells, trials=sized(2, 8)) == 0


def test_the_twin_equals_the_gate_on_rules_that_the_grid_does_not_hold() -> None:
    random = np.random.default_rng(4)
    for _ in range(60):
        n_base, most = int(random.integers(1, 31)), int(random.integers(2, 6))
        sigma, margin = random.uniform(0.002, 0.05), random.uniform(0.005, 0.3)
        rule = Rule(
            alpha=random.uniform(0.001, 0.1),
            beta=random.uniform(0.001, 0.1),
            max_runs=most,
            prior_dof=float(random.integers(1, 40)),
        )
        base = random.normal(0, sigma, (50, n_base))
        new = random.normal(random.uniform(-1.5, 1.5) * margin, sigma, (50, most))
        twin = judge_many(base, new, sigma=sigma, margin=margin, rule=rule)
        for position in range(50):
            judged = judge_performance(
                "output_throughput",
                throughputs(base[position]).tolist(),
                throughputs(new[position]).tolist(),
                band=-float(np.expm1(-margin)),
                sigma=sigma,
                rule=rule,
            )
            assert CODES[twin.codes[position]] == judged.verdict
            assert twin.runs[position] == judged.runs_used


def test_every_verdict_occurs_among_the_compared_cases() -> None:
    codes = {
        CODES[code]
        for cell in (Cell(n_base=3, band=2, loss=0.5), Cell(band=2, loss=-1.0))
        for code in by_gate(cell, 400).codes
    }
    assert codes == set(CODES)


def test_a_row_counts_improvements_as_passes() -> None:
    codes = [CODES.index(one) for one in (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)]
    told = row(Cell(), Outcomes(np.array([*codes, 0]), np.array([1, 2, 2, 5])))
    assert (told["pass"], told["regression"], told["inconclusive"]) == (0.5, 0.25, 0.25)
    assert told["starts"] == 2.5


def test_rates_are_those_of_the_rule() -> None:
    told = row(Cell(), by_twin(Cell(), 4000))
    assert told["regression"] <= 0.003
    assert told["starts"] == pytest.approx(1.04, abs=0.02)


def test_equal_keys_draw_equal_noise_and_others_do_not() -> None:
    first, again, other = (noise(key, "gauss", 3, 4) for key in ("a", "a", "b"))
    assert (first == again).all()
    assert (first != other).all()


def test_outliers_are_slow_and_4_in_100() -> None:
    plain, rough = (noise("a", kind, 2000, 10) for kind in ("gauss", "outliers"))
    assert (rough - plain == 6).mean() == pytest.approx(0.04, abs=0.006)
    assert set(np.unique(np.round(rough - plain, 9))) == {0.0, 6.0}


def test_unknown_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="pink"):
        noise("a", "pink", 1, 1)


def test_a_rate_of_none_still_has_an_error() -> None:
    assert standard_error(0.5, 100) == pytest.approx(0.05)
    assert standard_error(0.0, 100) == standard_error(0.01, 100) > 0
