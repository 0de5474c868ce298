"""What a metric could show: noise, bands and rates are the gate's; too little is refused."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import building
import pytest
from tables import each

from perfgate.judging.assembly.judgement import Reference
from perfgate.judging.forecast.metrics import MetricForecast, control_of, forecast_metric
from perfgate.judging.forecast.simulation import (
    AnswersDesign,
    BaselineDesign,
    Design,
    DocumentDesign,
    ScoreDesign,
    TurnsDesign,
    outcomes,
    smallest_found,
)
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules.odds import smallest_margin
from perfgate.judging.rules.probe import RunNoise
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import accuracy_probes, load_probes

METRIC = "output_throughput"
TEN = (100.0, 100.4, 99.7, 100.1, 99.9, 100.6, 99.5, 100.2, 100.3, 99.8)
DOF, LEARNT = "with 10 degrees of freedom", RunNoise(0.003, differences=20)
OWN = {"noise": "measured", "reference": "self"}


def shown(
    against: Reference,
    metric: str = METRIC,
    most: int = 5,
    *,
    can_be_started: bool = True,
    **gate: Any,
) -> tuple[MetricForecast, Design | None]:
    policy = replace(building.SCENARIO.gate, metrics=(metric,), **gate)
    scenario = replace(building.SCENARIO, gate=policy)
    probe = (accuracy_probes if metric == building.SUMS else load_probes)(scenario)[0]
    return forecast_metric(probe, metric, against, most, can_be_started=can_be_started)


def baseline(
    *values: float, metric: str = METRIC, noise: Mapping[str, RunNoise] | None = None
) -> Reference:
    """A baseline of so many starts; each is a session of its own."""
    entry = building.entry(*values, metric=metric)
    runs = tuple(replace(run, run=f"night-{n}") for n, run in enumerate(entry.runs))
    return Reference(replace(entry, runs=runs), noise=noise or {})


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
    noise = {METRIC: learnt} if learnt else {}
    found, _ = shown(baseline(*values, noise=noise))
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
    assert control_of(policy, can_be_started=can_be_started) == control
    found, _ = shown(baseline(*TEN), can_be_started=can_be_started, control=policy)
    assert found.control == control
    refused = found.problem is not None
    assert refused == (control == "unproved")
    assert not refused or "a baseline that says how its build is started" in found.problem.hint


@each(
    "values, most, gate, warning, refused",
    [
        (TEN[:1], 5, {}, "the baseline is of 1 session: 3 are wanted", False),
        (TEN, 5, {"bands": {METRIC: 0.017}}, "the band is 3.4 sigma: under 4, ", False),
        (TEN, 2, {}, "2 starts of the build allowed: no loss under 3 bands can be ", True),
        (TEN, 1, {"control": "none"}, "a REGRESSION needs two starts, so none can be proved", True),
    ],
)
def test_what_makes_a_test_worse_is_warned_of(values, most, gate, warning, refused) -> None:
    found, _ = shown(baseline(*values), most=most, **gate)
    assert found.warnings[0].startswith(warning)
    assert (found.problem is not None) == refused


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
    found, design = shown(reference, "ttft_p99_ms", **({} if reference.entry else OWN))
    assert found.problem is not None
    assert "it has no default band" in found.problem.problem
    assert (found.against != "nothing", design) == (True, None)


def test_a_machine_that_measures_itself_widens_its_band_and_is_never_refused() -> None:
    noisy, own = baseline(100.0, 108.0, 93.0, 104.0, 97.0), {**OWN, "max_starts": 4}
    found, _ = shown(noisy, most=4, **own)
    assert found.band is not None
    assert found.band > 0.1
    assert (found.problem, found.warnings, found.noise_from) == (None, (), "measured")
    assert found.notes[0].startswith("band widened from 2.0%")
    assert found.control == "alone"


def test_references_still_to_be_measured_take_turns_with_the_new_build() -> None:
    found, design = shown(Reference(), most=6, **OWN, reference_starts=6, max_starts=6)
    assert (found.against, found.baseline_runs, found.problem) == ("itself", 6, None)
    assert isinstance(design, TurnsDesign)
    assert (design.references, design.most, design.sigma) == (6, 6, noises.OWN_SIGMA)
    assert found.band == pytest.approx(-math.expm1(-design.margin))
    assert found.odds[0].regression < 0.003
    assert found.odds[0].starts == pytest.approx(4, abs=0.3)
    assert found.noise == "prior 3.00%, until the 6 reference starts show more"


def test_against_a_document_no_loss_under_the_tolerance_is_claimed() -> None:
    found, design = shown(Reference(documented={METRIC: DocumentedValue(100.0)}))
    assert (found.against, found.baseline_runs, found.problem) == ("documented", 1, None)
    assert design == DocumentDesign(pytest.approx(-math.log(0.9)), 0.005, 5)
    assert found.band == pytest.approx(0.10)
    # Statistics §7: with 3 % between machines 10 % is called in 33 %, 15 % in 92 %.
    assert found.odds[2].regression == pytest.approx(0.33, abs=0.03)
    assert found.smallest == pytest.approx(0.155, abs=0.006)


def test_without_a_baseline_nothing_can_be_shown() -> None:
    found, design = shown(Reference())
    assert (found.against, found.odds, found.problem) == ("nothing", (), None)
    assert found.smallest is design is None


def test_an_accuracy_is_shown_by_its_questions() -> None:
    answers = {f"q{n}": n % 10 != 0 for n in range(1319)}
    found, design = shown(Reference(building.with_answers(answers)), building.SUMS)
    assert design == AnswersDesign(1319, 0.02)
    assert found.smallest == smallest_margin(1319, 0.04, 1)
    assert found.notes == ("1319 questions, if 4.0% of the answers differ from run to run",)
    assert [at.loss for at in found.odds] == [0.0, 0.5, 1.0, 1.5]


def test_a_margin_that_the_questions_cannot_hold_is_refused() -> None:
    few = Reference(building.with_answers({f"q{n}": True for n in range(198)}))
    found, _ = shown(few, building.SUMS)
    assert found.problem is not None
    assert "is too small for its questions" in found.problem.problem
    assert found.problem.expected == "at least 93%"
    least = 100 * (smallest_margin(198, 0.04, 1) or 0)
    assert f"widen the margin to {least:g} points or more" in (found.problem.hint or "")
    own, _ = shown(few, building.SUMS, **OWN)
    assert own.problem is None
    assert own.warnings == ("a drop of the margin would be found too seldom",)


def test_a_documented_score_is_as_good_as_its_error() -> None:
    value = DocumentedValue(0.9447, stderr=0.0063)
    found, design = shown(Reference(documented={building.SUMS: value}), building.SUMS)
    assert isinstance(design, ScoreDesign)
    # 3.5 standard errors of one evaluation, which errs as the document does
    assert found.band == pytest.approx(3.5 * math.sqrt(2) * 0.0063, abs=2e-4)
    assert found.notes[0].startswith("margin raised from 2.0 points")
    assert 1.0 < (found.smallest or 0) / design.margin < 1.2
    exact = Reference(documented={building.SUMS: DocumentedValue(0.9447)})
    found, design = shown(exact, building.SUMS)
    assert found.smallest is design is None
    assert found.notes == ("a documented score without an error, taken as exact",)
