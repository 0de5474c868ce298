"""What a metric could show, before anything is measured: noise, bands and rates are the gate's.

Every kind of comparison is in tests/data/cli/plan*.txt, as `perfgate plan` shows it.
"""

import math
import re
from dataclasses import replace
from typing import Any

import building
import numpy as np
import pytest
from tables import each

from perfgate.baselines.baseline import BuildSource
from perfgate.judging.assembly.judgement import Reference
from perfgate.judging.forecast import simulation
from perfgate.judging.forecast.forecast import MetricForecast, forecast_metric
from perfgate.judging.forecast.simulation import Design
from perfgate.judging.rules import accuracy
from perfgate.judging.rules.sequential import PASS, REGRESSION
from perfgate.scenarios.probe import load_probes

SPEED = "output_throughput"
TEN = (100.0, 100.4, 99.7, 100.1, 99.9, 100.6, 99.5, 100.2, 100.3, 99.8)


def shown(against: Reference, most: int = 5, **gate: Any) -> tuple[MetricForecast, Design | None]:
    policy = replace(building.SCENARIO.gate, **{"metrics": (SPEED,), **gate})
    probe = load_probes(replace(building.SCENARIO, gate=policy))[0]
    return forecast_metric(probe, policy.metrics[0], against, most)


def baseline(*values: float) -> Reference:
    """A baseline of so many starts; each is a session of its own."""
    entry = building.entry(*values)
    runs = tuple(replace(run, run=f"night-{n}") for n, run in enumerate(entry.runs))
    return Reference(replace(entry, runs=runs), source=BuildSource(image="engine:old"))


def test_the_spread_of_a_baseline_joins_the_prior_noise() -> None:
    found, _ = shown(baseline(90.0, 100.0, 110.0))
    told = "prior 0.50% with 10 degrees of freedom and spread of 3 runs"
    assert (found.noise_from, found.noise) == ("pooled", told)
    assert found.sigma == pytest.approx(0.0061, abs=1e-4)


def test_what_finds_too_little_is_refused_and_each_remedy_helps() -> None:
    narrow = {SPEED: 0.013}
    found, _ = shown(baseline(100.0), bands=narrow)
    problem = found.problem
    assert "c1: the gate of output_throughput would find too little" in problem.problem
    assert problem.field == "small-serve.gate.bands.output_throughput"
    assert problem.expected == "at least 80%"
    assert found.odds[3].regression < 0.8
    wider, sessions = re.findall(r"band to ([\d.]+)%.* of (\d+) sessions", problem.hint)[0]
    assert shown(baseline(100.0), bands={SPEED: float(wider) / 100})[0].problem is None
    assert shown(baseline(*TEN[: int(sessions)]), bands=narrow)[0].problem is None
    assert shown(baseline(*TEN), most=3)[0].problem is None


@each("reference", [Reference(building.entry(5.0, metric="ttft_p99_ms")), Reference()])
def test_a_metric_without_a_band_cannot_gate(reference) -> None:
    own = {} if reference.entry else {"noise": "measured", "reference": "self"}
    found, design = shown(reference, metrics=("ttft_p99_ms",), **own)
    assert "it has no default band" in found.problem.problem
    assert (found.against != "nothing", design) == (True, None)


# Margins of accuracy: what the rule for paired answers finds. -----------------------------------


# Questions, share of answers that change → smallest margin in points, for a baseline of one
# evaluation and of three.
@each(
    "questions, changed, one, three",
    [
        (1319, 0.02, 2.0, 1.5),
        (1319, 0.04, 2.5, 2.0),
        (1319, 0.08, 3.25, 2.5),
        (198, 0.06, 9.5, 8.0),
        (198, 0.12, 12.0, 9.5),
        (198, 0.20, 14.5, 11.5),
        (200, 0.0, 4.5, 4.5),  # answers that never vary need a margin all the same
    ],
)
def test_the_smallest_margins(questions, changed, one, three) -> None:
    """Of GSM8K and GPQA; a step of the grid is what two simulations may differ by."""
    step = 0.25 if questions > 500 else 0.5
    found = [100 * simulation.smallest_margin(questions, changed, runs) for runs in (1, 3)]
    assert found == pytest.approx([one, three], abs=step + 1e-9 if changed else 1e-9)


def test_too_few_questions_hold_no_margin() -> None:
    assert simulation.smallest_margin(2, 0.0, 1) is simulation.smallest_margin(1, 0.2, 1) is None


def slow_margin(questions: int, changed: float, base_runs: int, margin: float) -> float:
    """The share found, question by question and not by counts, with questions drawn beforehand."""
    draw = np.random.default_rng(5)
    trials, varying = 3000, round(changed / 0.42 * questions)
    chance = draw.choice([0.3, 0.7], (1, varying))
    base = draw.binomial(base_runs, np.broadcast_to(chance, (trials, varying))) / base_runs
    runs = [draw.random((trials, varying)) < chance for _ in range(3)]
    always, total = round(margin * questions), np.zeros((trials, varying))
    alone = [((base - one).sum(axis=1) + always) / questions for one in runs]
    lost, open_ = np.zeros(trials, bool), np.ones(trials, bool)
    for r in (1, 2, 3):
        total += runs[r - 1]
        each = base - total / r
        d = (each.sum(axis=1) + always) / questions
        spread = np.maximum((each**2).sum(axis=1) + always - questions * d * d, 0)
        error = np.sqrt(spread + 1 / min(r, base_runs)) / questions
        passed = open_ & (d + 1.645 * error < margin)
        agree = sum((one > margin / 2).astype(int) for one in alone[:r]) >= 2
        lost |= open_ & ~passed & agree & (d - 2.88 * error > 0)
        open_ &= ~passed & ~lost
    return float(lost.mean())


@each(
    "design",
    [(1319, 0.08, 1, 0.02), (1319, 0.04, 3, 0.015), (200, 0.04, 2, 0.06), (198, 0.2, 5, 0.09)],
)
def test_counting_patterns_is_drawing_questions(design) -> None:
    found = simulation.paired_answers(*design, design[-1]).share(REGRESSION)
    assert found == pytest.approx(slow_margin(*design), abs=4 * math.sqrt(0.25 / 3000))


def test_a_build_that_lost_nothing_passes() -> None:
    for changed, base_runs in ((0.04, 1), (0.08, 1), (0.08, 3)):
        margin = simulation.smallest_margin(1319, changed, base_runs)
        found = simulation.paired_answers(1319, changed, base_runs, margin, 0.0)
        assert found.share(REGRESSION) <= 0.002
        assert found.share(PASS) >= 0.997
        assert found.new.mean() < 1.02


def right(number: int, questions: int = 40) -> dict[str, bool]:
    return {f"q{place}": place < number for place in range(questions)}


@each(
    "evaluations, share",
    [
        ([], None),
        ([right(38)], None),
        ([right(38), right(39, 39)], None),
        ([right(38)] * 3, 0.0),
        ([right(38), right(28)], 10 / 40),
        # of three evaluations two of three pairs differ in each of ten questions
        ([right(38), right(38), right(28)], 10 * 2 / 3 / 40),
    ],
)
def test_the_share_of_answers_that_change(evaluations, share) -> None:
    found = simulation.changed_share(evaluations)
    assert found == (None if share is None else pytest.approx(share))


def against_score(drop: float) -> Any:
    """0.95 ± 0.0063 on 1319 questions, binomial scatter: m is raised to 3.05 points."""
    document = accuracy.documented_score(0.95, 0.0063)
    return simulation.documented_score(document, 1319, 0.03, drop)


def against_speed(loss: float) -> Any:
    """Sigma 0.5 %, 3 % between the machines, tolerance 10 %."""
    lost = -math.log(1 - loss)
    return simulation.documented_speed(-math.log(0.9), 0.005, 3, lost)


@each(
    "against, at, lost, passed, step",
    [
        *((against_score, *row, 1) for row in
          ((0.0, 0.6, 99.4), (0.02, 51, 49), (0.03, 89, 11), (0.04, 99, 1))),
        *((against_speed, *row, 1.5) for row in
          ((0.0, 0.004, 99.9), (0.05, 1.4, 92), (0.08, 13, 65), (0.10, 33, 37), (0.15, 92, 1.5))),
    ],
)  # fmt: skip
def test_error_rates_against_a_document(against, at, lost, passed, step) -> None:
    """True loss → REGRESSION %, PASS %."""
    found = against(at)
    assert 100 * found.share(REGRESSION) == pytest.approx(lost, abs=step)
    assert 100 * found.share(PASS) == pytest.approx(passed, abs=step)
