"""Simulation: what a plan promises is what the verdicts do, on noise that it never saw, which is
as noisy as its scenario says."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from plain_values import judge_performance
from sizes import sized
from tables import each

from benchmarks.detection.draws import SCENARIOS, Values
from perfgate.core.verdict import Judgement, Rule, Verdict
from perfgate.judging.forecast import simulation
from perfgate.judging.forecast.simulation import (
    IN_SESSION,
    BaselineDesign,
    RuleDesign,
    odds,
    of_probe,
    session_counts,
    starts,
    two_builds,
)
from perfgate.judging.rules.paired import AB_RULE, OWN_NOISE_RULE

TRIALS = 1500
CONTROLS: tuple[simulation.Control, ...] = ("controlled", "alone", "unproved")
TEN = BaselineDesign(10, 10, 4.04)


def judged(one: BaselineDesign, loss: float, draw: np.random.Generator) -> list[Judgement]:
    """By the gate's own function, on other numbers: a baseline and a session for each trial."""
    sigma = float(draw.uniform(0.003, 0.03))
    counts = session_counts(one.n_base, one.sessions)
    base, now = (
        starts(draw, simulation.REAL, TRIALS, 1, some)[:, 0].astype(float)
        for some in (counts, [IN_SESSION])
    )
    is_controlled = one.control == "controlled"
    settings = {"band": float(np.expm1(one.band * sigma)), "sigma": sigma, "sessions": one.sessions}
    settings["policy"] = "required" if one.control == "unproved" else "auto"
    settings["rule"] = Rule(max_runs=one.most)
    new = now[:, (0, 1, 4, 5)][:, : one.most] if is_controlled else now[:, : one.most]
    before, after, controls = (
        (20 * np.exp(sigma * losses)).tolist()
        for losses in (base, new + loss * one.band, now[:, (2, 3, 6)])
    )
    controls = controls if is_controlled else [None] * TRIALS
    return [
        judge_performance("tpot_mean_ms", *sides, controls=beside, **settings)
        for *sides, beside in zip(before, after, controls, strict=True)
    ]


@pytest.mark.nightly
@each("seed", range(sized(6, 20)))
def test_what_is_promised_is_met_by_an_independent_simulation(seed: int) -> None:
    draw = np.random.default_rng([6, seed])
    n_base = int(draw.integers(1, 13))
    sessions, band = int(draw.integers(1, n_base + 1)), round(float(draw.uniform(2.5, 6)), 2)
    control = CONTROLS[int(draw.choice(3, p=[0.6, 0.3, 0.1]))]
    design = BaselineDesign(n_base, sessions, band, control, int(draw.integers(2, 6)))
    loss = float(draw.choice([0.0, 0.5, 1.0, 1.5]))
    promised, found = odds(design, loss), judged(design, loss, draw)
    for share, of_kind in (
        (promised.regression, {Verdict.REGRESSION}),
        (promised.passed, {Verdict.PASS, Verdict.IMPROVEMENT}),
        (promised.inconclusive, {Verdict.INCONCLUSIVE}),
    ):
        seen = sum(one.verdict in of_kind for one in found) / TRIALS
        kept = min(max(share, 1 / TRIALS), 1 - 1 / TRIALS)
        assert seen == pytest.approx(share, abs=4 * sqrt(kept * (1 - kept) / TRIALS) + 0.002)
    # An IMPROVEMENT names the second start where the PASS came after the first.
    used = [1 if one.verdict == Verdict.IMPROVEMENT else one.runs_used for one in found]
    assert np.mean(used) == pytest.approx(promised.starts, abs=0.15)
    controls = [one.controls_used for one in found]
    assert np.mean(controls) == pytest.approx(promised.controls, abs=0.15)


@each(
    "size, band, found, smallest, passed, both",
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
    design = BaselineDesign(*size, band)
    still, least = odds(design, 0.0), simulation.smallest_found(design)
    assert odds(design, 1.0).regression == pytest.approx(found, abs=0.01)
    assert least == pytest.approx(smallest, abs=0.06)
    assert odds(design, least).regression >= 0.95
    assert odds(design, least - 0.02).regression < 0.955
    assert still.passed == pytest.approx(passed, abs=0.005)
    assert still.starts + still.controls == pytest.approx(both, abs=0.06)


@each("n_base, mean", [(10, 1.23), (3, 1.43)])
def test_the_starts_of_three_metrics(n_base: int, mean: float) -> None:
    """Statistics §2 and §4, noise as engines have it."""
    three = [BaselineDesign(n_base, n_base, 4.04, column=column) for column in range(3)]
    found = of_probe(three, slower=False)
    assert found.starts == pytest.approx(mean, abs=0.03)
    assert found.regression <= 0.0005
    alone = of_probe([three[0]], slower=False)
    assert alone == of_probe([three[0]] * 2, slower=False), "one noise, one verdict"
    still = odds(three[0], 0.0)
    assert alone.starts == pytest.approx(still.starts + still.controls, abs=1e-4)
    assert found.starts > alone.starts
    # Eight probes that each stop after the first start with chance p: all do with p^8.
    eight = simulation.slowest([alone] * 8)
    assert eight.new[0] == pytest.approx(alone.new[0] ** 8)
    assert 1 - eight.regression == pytest.approx((1 - alone.regression) ** 8)


@each(
    "design, new, controls",
    [
        (TEN, 4, 3),
        (replace(TEN, most=2), 2, 2),
        (replace(TEN, most=3, control="alone"), 3, 0),
        *((RuleDesign(0.1, simulation.documented_speed, (0.1, 0.005, most), is_speed=True), used, 0)
          for most, used in ((2, 2), (5, 3))),
        (simulation.in_turns(0.02, 0.29, 0.03, 6, 6), 6, 0),
        (RuleDesign(0.02, simulation.paired_answers, (1319, 0.04, 1, 0.02)), 3, 0),
    ],
)  # fmt: skip
def test_a_test_never_asks_for_more_starts_than_it_may(design, new, controls) -> None:
    for slower in (False, True):
        found = simulation.slowest([of_probe([design], slower=slower), of_probe([], slower=slower)])
        assert (len(found.new), len(found.controls) - 1) == (new, controls)
        assert found.most == new + controls
        assert sum(found.new) == pytest.approx(1) == sum(found.controls)
    if new == 6:
        assert found.new[:3] == (0, 0, 0), "in turns four at least"


def test_what_an_ab_finds_at_each_effect() -> None:
    """Statistics §10, a band of 4 sigma: 4.1 starts if nothing changed, one band found in 94 %."""

    def efforts(sigma: float, band: float) -> list[simulation.Odds]:
        design = two_builds(replace(AB_RULE, sigma=sigma), band)
        return [odds(design, bands) for bands in (0.0, 0.5, 1.0, 2.0)]

    none, half, one, two = efforts(0.005, 0.02)
    assert none.regression < 0.02
    assert none.passed > 0.97
    assert 4 <= 2 * none.starts < 4.5
    assert one.regression > 0.88
    assert two.regression > 0.96
    assert half.regression + half.passed <= 1
    # The ratio of band and noise decides.
    assert efforts(0.02, 0.08) == [none, half, one, two] != efforts(0.02, 0.02)
    # A machine that measures its own noise takes four pairs at least.
    own = odds(two_builds(OWN_NOISE_RULE, 0.05), 0.0)
    assert own.starts >= 4
    assert own.regression < 0.03


def drawn(scenario: str, metrics: int, counts: list[int], trials: int = 40_000) -> Values:
    return starts(np.random.default_rng([7, metrics]), SCENARIOS[scenario], trials, metrics, counts)


@each("scenario, between", [("gauss", 0), ("session", 0.3), ("session50", 0.5), ("real", 0.3)])
def test_a_start_has_the_spread_of_the_prior_and_shares_its_luck(scenario, between) -> None:
    if scenario != "real":  # without events
        values = drawn(scenario, 3, [2, 2])
        assert values.mean(axis=(0, 2)) == pytest.approx([0, 0, 0], abs=0.02)
        assert values.std(axis=(0, 2)) == pytest.approx([1, 1, 1], abs=0.02)
    calm = np.clip(drawn(scenario, 1, [2, 1])[:, 0], -2, 2)
    assert np.corrcoef(calm[:, 0], calm[:, 1])[0, 1] == pytest.approx(between, abs=0.05)
    assert np.corrcoef(calm[:, 0], calm[:, 2])[0, 1] == pytest.approx(0, abs=0.02)


def test_the_middle_of_three_nights_reverts_as_often_as_in_published_nightlies() -> None:
    """Of 408 triples of nights whose outer two agree, the middle one was worse by more than 4 sigma
    in 4.4 to 5.1 %, by more than 6 in 2.2 to 2.6 %, and better by more than 4 in 1.6 to 2.2 %."""
    nights = drawn("real", 1, [1, 1, 1], trials=200_000)[:, 0]
    agree = np.abs(nights[:, 0] - nights[:, 2]) < 2
    gap = (nights[:, 1] - nights[:, [0, 2]].mean(axis=1))[agree]
    assert 0.03 < (gap > 4).mean() < 0.055
    assert 0.013 < (gap > 6).mean() < 0.03
    assert 0.012 < (gap < -4).mean() < 0.025
