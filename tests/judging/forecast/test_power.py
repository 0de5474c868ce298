"""Power: what `plan` promises is what the gate does, on noise that the promise never saw."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from plain_values import judge_performance
from sizes import sized
from tables import each

from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.forecast.power import FOUND, Control, Design, bisected, odds, smallest_found

METRIC = "tpot_mean_ms"
TRIALS = 1500
CONTROLS: tuple[Control, ...] = ("controlled", "alone", "unproved")


class Setting:
    """A random setting: noise, band, baseline, starts allowed, policy, true loss."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng([6, seed])
        self.sigma = float(draw.uniform(0.003, 0.03))
        n_base = int(draw.integers(1, 13))
        self.design = Design(
            n_base,
            int(draw.integers(1, n_base + 1)),
            round(float(draw.uniform(2.5, 6)), 2),
            CONTROLS[int(draw.choice(3, p=[0.6, 0.3, 0.1]))],
            int(draw.integers(2, 6)),
        )
        self.loss = float(draw.choice([0.0, 0.5, 1.0, 1.5]))
        self.draw = draw

    def judged(self) -> list[Judgement]:
        """By the gate's own function, on other numbers: a baseline and a session for each trial."""
        one, margin = self.design, self.design.band * self.sigma
        counts = [
            one.n_base // one.sessions + (n < one.n_base % one.sessions)
            for n in range(one.sessions)
        ]
        base = starts(self.draw, "real", TRIALS, 1, counts)[:, 0].astype(np.float64)
        now = starts(self.draw, "real", TRIALS, 1, [8])[:, 0].astype(np.float64)
        is_controlled = one.control == "controlled"
        new = now[:, (0, 1, 4, 5)][:, : one.most] if is_controlled else now[:, : one.most]
        before, controls = self.values(base), self.values(now[:, (2, 3, 6)])
        after = self.values(new + self.loss * one.band)
        return [
            judge_performance(
                METRIC,
                before[trial],
                after[trial],
                band=float(np.expm1(margin)),
                sigma=self.sigma,
                sessions=one.sessions,
                controls=controls[trial] if is_controlled else None,
                policy="required" if one.control == "unproved" else "auto",
                rule=Rule(max_runs=one.most),
            )
            for trial in range(TRIALS)
        ]

    def values(self, losses: np.ndarray) -> list[list[float]]:  # type: ignore[type-arg]
        return (20 * np.exp(self.sigma * losses)).tolist()  # type: ignore[no-any-return]


@pytest.mark.nightly
@each("seed", range(sized(6, 20)))
def test_what_is_promised_is_met_by_an_independent_simulation(seed: int) -> None:
    setting = Setting(seed)
    promised, judged = odds(setting.design, setting.loss), setting.judged()
    for share, of_kind in (
        (promised.regression, {Verdict.REGRESSION}),
        (promised.passed, {Verdict.PASS, Verdict.IMPROVEMENT}),
        (promised.inconclusive, {Verdict.INCONCLUSIVE}),
    ):
        seen = sum(one.verdict in of_kind for one in judged) / TRIALS
        kept = min(max(share, 1 / TRIALS), 1 - 1 / TRIALS)
        assert seen == pytest.approx(share, abs=4 * sqrt(kept * (1 - kept) / TRIALS) + 0.002)
    # An IMPROVEMENT names the second start where the PASS came after the first.
    used = [1 if one.verdict == Verdict.IMPROVEMENT else one.runs_used for one in judged]
    controls = float(np.mean([one.controls_used for one in judged]))
    assert np.mean(used) == pytest.approx(promised.new, abs=0.15)
    assert controls == pytest.approx(promised.controls, abs=0.15)


@each(
    ("size", "band", "found", "smallest", "passed", "both"),
    [
        ((1, 1), 4.04, 0.75, 1.86, 0.995, 1.8),
        ((3, 3), 3.0, 0.76, 1.44, 0.98, 1.9),
        ((3, 3), 4.04, 0.93, 1.10, 0.998, 1.2),
        ((10, 10), 3.0, 0.88, 1.23, 0.99, 1.4),
        ((10, 10), 4.04, 0.94, 1.05, 0.999, 1.1),
        ((10, 10), 5.0, 0.95, 1.02, 1.0, 1.1),
    ],
)
def test_the_table_of_statistics_6(size, band, found, smallest, passed, both) -> None:
    design = Design(*size, band)
    still, least = odds(design, 0.0), smallest_found(design)
    assert odds(design, 1.0).regression == pytest.approx(found, abs=0.01)
    assert least == pytest.approx(smallest, abs=0.06)
    assert still.passed == pytest.approx(passed, abs=0.005)
    assert still.new + still.controls == pytest.approx(both, abs=0.06)


def test_with_fewer_than_three_starts_no_loss_under_three_bands_is_found() -> None:
    design = Design(10, 10, 4.04)
    for most in (1, 2):
        few = replace(design, most=most)
        assert odds(few, 2.5).regression < 0.02
        assert smallest_found(few) is None or most == 2
    assert odds(replace(design, most=2), 3.9).regression > 0.5
    assert odds(replace(design, most=3), 1.0).regression == pytest.approx(0.84, abs=0.02)


def test_where_a_control_is_required_and_cannot_be_made_nothing_is_found() -> None:
    unproved = Design(10, 10, 4.04, "unproved")
    assert smallest_found(unproved) is None
    assert odds(unproved, 1.0).regression == 0
    assert odds(unproved, 0.0).passed > 0.95


def test_the_smallest_loss_is_where_19_of_20_are_found() -> None:
    design = Design(5, 5, 4.5)
    least = smallest_found(design)
    assert least is not None
    assert odds(design, least).regression >= FOUND
    assert odds(design, least - 0.02).regression < FOUND + 0.005
    assert bisected(lambda loss: float(loss > 1.0)) == pytest.approx(1.0, abs=0.005)
    assert bisected(lambda loss: 0.9) is None
