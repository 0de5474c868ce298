"""The study's simulation says what the gate says, case by case, and counts it right."""

from dataclasses import replace

import numpy as np
import pytest
from sizes import sized

from benchmarks.detection import release_run
from benchmarks.detection.draws import NOISES, noise, probes
from benchmarks.detection.error_rates import (
    SHIFTS,
    Cell,
    by_gate,
    by_rule,
    checked_cells,
    disagreements,
    row,
    standard_error,
)
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.sequential import HOST_SHIFT, PASS


@pytest.mark.nightly
def test_the_simulated_rule_equals_the_gate_in_every_cell() -> None:
    cells = checked_cells()
    assert {cell.noise for cell in cells} == set(NOISES)
    assert {cell.moved for cell in cells} == {0.0, *SHIFTS}
    assert disagreements(cells, trials=sized(5, 60)) == 0


def test_a_difference_would_be_seen() -> None:
    """With the gate on a band of its own, verdicts differ."""
    cell = Cell(loss=0.5)
    judged = by_gate(replace(cell, band=cell.band * 1.3), 60)
    (found,) = by_rule(cell, 60)
    assert any(
        (one.verdict == Verdict.REGRESSION) != (found.codes[trial] == 3)
        for trial, one in enumerate(judged)
    )


def test_every_verdict_occurs_among_the_compared_cases() -> None:
    judged = [
        one
        for cell in (Cell(loss=0.5), Cell(loss=-1.0), Cell(loss=1.0), Cell(moved=5.0))
        for one in by_gate(cell, 300)
    ]
    assert {one.verdict for one in judged} >= {
        Verdict.PASS,
        Verdict.REGRESSION,
        Verdict.IMPROVEMENT,
        Verdict.INCONCLUSIVE,
    }
    assert any(one.mark == "HOST_SHIFT" for one in judged)


def test_a_row_counts_a_host_shift_as_a_pass() -> None:
    cell = Cell(moved=8.0)
    told, (found,) = row(cell, 500), by_rule(cell, 500)
    assert told["pass"] == pytest.approx(found.share(PASS, HOST_SHIFT))
    assert told["host_shift"] == pytest.approx(found.share(HOST_SHIFT))
    assert found.share(HOST_SHIFT) > 0.9


def test_rates_are_those_of_the_rule() -> None:
    """Statistics §2: three metrics, noise "real", ten starts of ten sessions."""
    still, slow = (row(Cell(metrics=3, loss=loss), 20_000) for loss in (0.0, 1.0))
    assert still["of_a_metric"] <= 0.0003
    assert float(str(still["new"])) + float(str(still["controls"])) == pytest.approx(1.23, abs=0.03)
    assert slow["of_a_metric"] == pytest.approx(0.94, abs=0.01)


def test_many_trials_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.detection.error_rates._PART", 40)
    told = row(Cell(loss=1.0), 100)
    assert told["trials"] == 100
    shares = [told[name] for name in ("regression", "pass", "inconclusive")]
    assert sum(map(float, map(str, shares))) == pytest.approx(1)


SHAPE = release_run.Shape(probes=6, metrics=3, band=4.04)


def test_a_release_run_counts_every_probe_and_its_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_run, "shapes_of", lambda _suite: (SHAPE,) * 2)
    monkeypatch.setattr(release_run, "_AT_ONCE", 30)
    found = release_run.of_releases(40)
    assert len(found) == len(release_run.CASES)
    by_case = {(one["noise"], one["n_base"], one["shared"], one["control"]): one for one in found}
    controlled = by_case["real", 10, True, "controlled"]
    alone = by_case["real", 10, True, "alone"]
    assert float(str(controlled["any_regression"])) <= float(str(alone["any_regression"]))
    assert 1 <= float(str(controlled["starts"])) < 3


def test_shared_events_hit_all_probes_of_a_start() -> None:
    case = release_run.Release("old4x6", 10, 10, True, "controlled")
    drawn = release_run._drawn(np.random.default_rng(1), case, SHAPE, 500, [4])
    slow = (drawn[:, 0] > 4).reshape(500, SHAPE.probes, 4)
    own = release_run._drawn(np.random.default_rng(1), replace(case, shared=False), SHAPE, 500, [4])
    apart = (own[:, 0] > 4).reshape(500, SHAPE.probes, 4)
    assert slow.all(axis=1).mean() > 0.02
    assert apart.all(axis=1).mean() < 0.002


def test_equal_keys_draw_equal_noise_and_others_do_not() -> None:
    first, again, other = (noise(key, "real", 3, [1, 3]) for key in ("a", "a", "b"))
    assert (first == again).all()
    assert (first != other).all()
    one, part = (probes("real", 3, 3, 1, 5, number)[0] for number in (0, 1))
    assert (one != part).any()


def test_a_rate_of_none_still_has_an_error() -> None:
    assert standard_error(0.5, 100) == pytest.approx(0.05)
    assert standard_error(0.0, 100) == standard_error(0.01, 100) > 0
