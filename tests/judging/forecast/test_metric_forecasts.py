"""What a metric could show: noise, bands and rates are the gate's; too little is refused.

Every kind of comparison is in tests/cli/recorded_plans.json, as `perfgate plan` shows it.
"""

import math
import re
from dataclasses import replace
from typing import Any

import building
import pytest
from tables import each

from perfgate.engines.build_source import BuildSource
from perfgate.judging.assembly.judgement import Reference
from perfgate.judging.forecast.metrics import MetricForecast, forecast_metric
from perfgate.judging.forecast.simulation import BaselineDesign, Design, outcomes, smallest_found
from perfgate.judging.rules.noise import RunNoise
from perfgate.scenarios.probe import load_probes

METRIC = "output_throughput"
SOURCE = BuildSource(image="engine:old")
TEN = (100.0, 100.4, 99.7, 100.1, 99.9, 100.6, 99.5, 100.2, 100.3, 99.8)
DOF, LEARNT = "with 10 degrees of freedom", RunNoise(0.003, differences=20)


def shown(against: Reference, most: int = 5, **gate: Any) -> tuple[MetricForecast, Design | None]:
    policy = replace(building.SCENARIO.gate, **{"metrics": (METRIC,), **gate})
    probe = load_probes(replace(building.SCENARIO, gate=policy))[0]
    (metric,) = policy.metrics
    return forecast_metric(probe, metric, against, most)


def baseline(*values: float, noise: RunNoise | None = None) -> Reference:
    """A baseline of so many starts; each is a session of its own."""
    entry = building.entry(*values)
    runs = tuple(replace(run, run=f"night-{n}") for n, run in enumerate(entry.runs))
    return Reference(
        replace(entry, runs=runs), noise={METRIC: noise} if noise else {}, source=SOURCE
    )


def test_against_a_baseline_the_rule_is_simulated_as_it_is() -> None:
    found, design = shown(baseline(*TEN))
    assert design == BaselineDesign(10, 10, -math.log1p(-0.02) / 0.005)
    assert (found.against, found.noise_from, found.control) == ("baseline", "pooled", "controlled")
    assert (found.baseline_runs, found.baseline_sessions, found.band) == (
        10,
        10,
        pytest.approx(0.02),
    )
    assert [at.loss for at in found.odds] == [0.0, 0.5, 1.0, 1.5]
    assert found.odds[2] == outcomes(design, 1.0).odds(1.0)
    bands = smallest_found(design)
    assert bands is not None
    assert found.smallest == pytest.approx(-math.expm1(bands * math.log1p(-0.02)))
    assert (found.problem, found.warnings, found.notes) == (None, (), ())


@each(
    "values, learnt, word, text, sigma",
    [
        (TEN[:1], None, "prior", f"prior 0.50% {DOF}", 0.005),
        (TEN[:2], None, "pooled", f"prior 0.50% {DOF} and spread of 2 runs", 0.005),
        (TEN[:1], LEARNT, "history", f"history 0.30% {DOF}", 0.003),
        ((90.0, 100.0, 110.0), None, "pooled", f"prior 0.50% {DOF} and spread of 3 runs", 0.0061),
    ],
)
def test_where_the_noise_comes_from(values, learnt, word, text, sigma) -> None:
    found, _ = shown(baseline(*values, noise=learnt))
    assert (found.noise_from, found.noise) == (word, text)
    assert found.sigma == pytest.approx(sigma, abs=1e-4)


@each(
    "policy, can_be_started, control",
    [
        ("auto", True, "controlled"),
        ("required", True, "controlled"),
        ("none", True, "alone"),
        ("auto", False, "alone"),
        ("required", False, "unproved"),
    ],
)
def test_which_rule_depends_on_the_policy_and_on_what_the_baseline_says(
    policy, can_be_started, control
) -> None:
    reference = baseline(*TEN)
    if not can_be_started:
        reference = replace(reference, source=None)
    found, _ = shown(reference, control=policy)
    assert found.control == control
    refused = found.problem is not None
    assert refused == (control == "unproved")
    assert not refused or "a baseline that says how its build is started" in found.problem.hint


def test_what_finds_too_little_is_refused_and_each_remedy_helps() -> None:
    narrow = {METRIC: 0.013}
    found, _ = shown(baseline(100.0), bands=narrow)
    problem = found.problem
    assert problem is not None
    assert "c1: the gate of output_throughput would find too little" in problem.problem
    assert problem.field == "small-serve.gate.bands.output_throughput"
    assert problem.expected == "at least 80%"
    assert found.odds[3].regression < 0.8
    wider, sessions = re.findall(r"band to ([\d.]+)%.* of (\d+) sessions", problem.hint or "")[0]
    assert shown(baseline(100.0), bands={METRIC: float(wider) / 100})[0].problem is None
    assert shown(baseline(*TEN[: int(sessions)]), bands=narrow)[0].problem is None
    (few, _), (enough, _) = (shown(baseline(*TEN), most=most) for most in (2, 3))
    assert few.problem is not None
    assert "allow 3 fresh starts (gate.max_starts)" in (few.problem.hint or "")
    assert enough.problem is None


@each("reference", [Reference(building.entry(5.0, metric="ttft_p99_ms")), Reference()])
def test_a_metric_without_a_band_cannot_gate(reference: Reference) -> None:
    own = {} if reference.entry else {"noise": "measured", "reference": "self"}
    found, design = shown(reference, metrics=("ttft_p99_ms",), **own)
    assert found.problem is not None
    assert "it has no default band" in found.problem.problem
    assert (found.against != "nothing", design) == (True, None)
