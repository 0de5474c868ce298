"""Detectability: noise, margins and rates are the gate's; a band it cannot resolve is refused."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import building
import pytest

from perfgate.gate import noise as noises
from perfgate.gate.performance import judge_documented, judge_performance
from perfgate.gate.probe import RunNoise
from perfgate.gate.rule import Rule
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.probe import Probe, accuracy_probes, load_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.verdicts.detectability import Prospect, prospects
from perfgate.verdicts.judgement import Reference
from perfgate.verdicts.start_effort import AnswersTest, SpeedTest

METRIC = "output_throughput"
TEN = (100.0, 100.4, 99.7, 100.1, 99.9, 100.6, 99.5, 100.2, 100.3, 99.8)


def scenario(*metrics: str, **changes: Any) -> Scenario:
    policy = replace(building.SCENARIO.gate, metrics=metrics or (METRIC,), **changes)
    return replace(building.SCENARIO, gate=policy)


def point(of: Scenario) -> Probe:
    return load_probes(of)[0]


def one(
    of: Scenario,
    reference: Reference,
    most: int = 5,
    rule: Rule | None = None,
) -> Prospect:
    (found,) = prospects(point(of), reference, rule or Rule(), most)
    return found


def with_baseline(*values: float, noise: Mapping[str, RunNoise] | None = None) -> Reference:
    return Reference(building.entry(*values), noise=noise or {})


def test_the_noise_is_that_of_the_gate() -> None:
    """U - d of the first look is t(1-beta) SE, which holds the noise, its dof and the baseline."""
    found = one(scenario(), with_baseline(*TEN))
    judged = judge_performance(METRIC, TEN, [100.0], rule=Rule())
    assert isinstance(found.test, SpeedTest)
    assert found.noise is not None
    assert judged.interval is not None
    assert judged.change is not None
    centre = math.log1p(judged.change)
    error = noises.standard_error(found.noise, found.n_base, 1)
    worst = centre - noises.t_quantile(1 - found.test.level.rule.beta, found.noise.dof) * error
    assert math.log1p(judged.interval[0]) == pytest.approx(worst)
    assert found.band == pytest.approx(judged.band)
    assert (found.n_base, found.noise_from) == (10, "pooled")


def test_the_smallest_loss_shrinks_with_every_start_as_the_formula_says() -> None:
    found = one(scenario(), with_baseline(*TEN))
    assert found.noise is not None
    assert list(found.smallest) == sorted(found.smallest, reverse=True)
    assert len(found.smallest) == 5
    for starts, loss in enumerate(found.smallest, start=1):
        least = noises.smallest_detectable(found.noise, 10, starts, alpha=0.025)
        assert loss == pytest.approx(-math.expm1(-least))
    assert found.problem is None


def test_where_the_noise_comes_from() -> None:
    few = one(scenario(), with_baseline(100.0))
    assert few.noise is not None
    assert (few.noise_from, few.noise.sigma, few.noise.dof) == ("prior", 0.005, 10)
    calibrated = with_baseline(100.0, noise={METRIC: RunNoise(0.003, differences=20)})
    known = one(scenario(), calibrated)
    assert known.noise is not None
    assert (known.noise_from, known.noise.sigma, known.noise.dof) == ("calibrated", 0.003, 14.5)
    assert known.noise.source.startswith("calibrated 0.30% with 14.5 degrees of freedom")
    assert known.smallest[0] < few.smallest[0]


def test_metrics_of_one_probe_share_alpha() -> None:
    entry = replace(
        building.entry(*TEN),
        runs=tuple(
            replace(run, metrics={METRIC: value, "tpot_mean_ms": value})
            for run, value in zip(building.entry(*TEN).runs, TEN, strict=True)
        ),
    )
    both = prospects(point(scenario(METRIC, "tpot_mean_ms")), Reference(entry), Rule(), 5)
    assert [found.test.level.rule.alpha for found in both if isinstance(found.test, SpeedTest)] == [
        0.0125
    ] * 2
    alone = one(scenario(), Reference(entry))
    assert both[0].smallest[0] > alone.smallest[0]


def test_a_band_below_the_noise_floor_is_refused_and_told_how_to_mend_it() -> None:
    found = one(scenario(bands={METRIC: 0.006}), with_baseline(100.0, 100.5), most=2)
    assert found.problem is not None
    assert "c1: the band of output_throughput is below the noise floor" in found.problem.problem
    assert found.problem.field == "small-serve.gate.bands.output_throughput"
    assert found.problem.hint is not None
    assert found.problem.hint.startswith("widen the band to ")
    # What it says does mend it.
    least = float(found.problem.hint.split()[4].rstrip("%")) / 100
    assert found.smallest[-1] <= least < found.smallest[-1] + 0.001
    assert one(scenario(bands={METRIC: least}), with_baseline(100.0, 100.5), most=2).problem is None


def test_more_baseline_runs_or_more_starts_are_named_where_they_would_do() -> None:
    found = one(scenario(bands={METRIC: 0.018}), with_baseline(100.0, 100.5), most=2)
    assert found.problem is not None
    words = (found.problem.hint or "").split()
    assert "accept" in words, words
    assert "allow" in words, words
    runs, starts = int(words[words.index("accept") + 1]), int(words[words.index("allow") + 1])
    noise = found.noise
    assert noise is not None

    def resolves(n_base: int, most: int) -> bool:
        return -math.expm1(-noises.smallest_detectable(noise, n_base, most, alpha=0.025)) <= 0.018

    assert (resolves(runs, 2), resolves(runs - 1, 2)) == (True, False)
    assert (resolves(2, starts), resolves(2, starts - 1)) == (True, False)


def test_a_metric_without_a_band_cannot_gate() -> None:
    found = one(scenario("ttft_p99_ms"), Reference(building.entry(5.0, metric="ttft_p99_ms")))
    assert found.problem is not None
    assert "it has no default band" in found.problem.problem


def test_a_machine_that_measures_itself_widens_its_band_and_is_never_refused() -> None:
    own = scenario(noise="measured", reference="self", max_starts=4)
    noisy = (100.0, 108.0, 93.0, 104.0, 97.0)
    found = one(own, with_baseline(*noisy), most=4)
    judged = judge_performance(METRIC, noisy, [100.0], rule=Rule(max_runs=4), measured_noise=True)
    assert found.band == pytest.approx(judged.band)
    assert found.band is not None
    assert found.band > 0.1
    assert found.problem is None
    assert found.noise_from == "measured"
    assert any("band widened from 2.0%" in note for note in found.notes)
    assert found.smallest[-1] == pytest.approx(found.band)


def test_a_reference_still_to_be_measured_is_planned_with_the_prior() -> None:
    own = scenario(noise="measured", reference="self", reference_starts=5)
    found = one(own, Reference(), most=4)
    assert (found.against, found.n_base, found.problem) == ("itself", 5, None)
    # docs/reference/verdicts.md: 4.27 s for five reference starts, at most four new ones, s = 8 %
    assert found.band == pytest.approx(-math.expm1(-4.27 * 0.08), abs=1e-3)


def test_too_few_runs_of_a_machine_that_measures_itself_are_told() -> None:
    own = scenario(noise="measured", reference="self")
    found = one(own, with_baseline(100.0, 101.0))
    assert found.problem is not None
    assert "too few baseline runs to measure this machine's noise" in found.problem.problem


def test_against_a_document_the_machines_differ_and_two_starts_are_all() -> None:
    reference = Reference(documented={METRIC: DocumentedValue(100.0)})
    found = one(scenario(), reference)
    judged = judge_documented(METRIC, 100.0, [100.0])
    assert isinstance(found.test, SpeedTest)
    assert judged.interval is not None
    assert found.noise is not None
    level = found.test.level
    error = noises.standard_error(found.noise, 1, 1, environment_sigma=level.environment_sigma)
    # That the interval is the gate's holds its alpha, its beta, and its 3 % between machines.
    low = -noises.t_quantile(1 - level.rule.beta, found.noise.dof) * error
    high = noises.t_quantile(1 - level.rule.alpha, found.noise.dof) * error
    assert judged.interval == pytest.approx((math.expm1(low), math.expm1(high)))
    assert found.band == pytest.approx(judged.band)
    assert len(found.smallest) == 2
    assert found.smallest[0] == pytest.approx(0.0964, abs=1e-4)  # 3.29 standard errors
    assert (found.against, found.n_base, found.problem) == ("documented", 1, None)


def test_a_documented_tolerance_is_never_taken_below_ten_per_cent() -> None:
    reference = Reference(documented={METRIC: DocumentedValue(100.0, tolerance=0.05)})
    assert one(scenario(), reference).band == pytest.approx(0.10)
    reference = Reference(documented={METRIC: DocumentedValue(100.0, tolerance=0.20)})
    assert one(scenario(), reference).band == pytest.approx(0.20)


def test_without_a_baseline_nothing_can_be_shown() -> None:
    found = one(scenario(), Reference())
    assert (found.against, found.smallest, found.test, found.problem) == ("nothing", (), None, None)


def accuracy(reference: Reference) -> Prospect:
    (found,) = prospects(accuracy_probes(scenario(building.SUMS))[0], reference, Rule(), 5)
    return found


def test_an_accuracy_is_shown_by_its_questions() -> None:
    answers = {f"q{n}": n % 10 != 0 for n in range(1319)}
    found = accuracy(Reference(building.with_answers(answers)))
    assert found.test == AnswersTest(1319, 0.02)
    assert found.smallest == (pytest.approx(0.0219, abs=1e-4),)
    assert found.notes[0].startswith("1319 questions")
    few = accuracy(Reference(building.with_answers({f"q{n}": True for n in range(100)})))
    assert "a loss of just the band would be missed more often than that" in few.notes


def test_a_documented_score_is_as_good_as_its_error() -> None:
    value = DocumentedValue(0.9447, stderr=0.0063)
    found = accuracy(Reference(documented={building.SUMS: value}))
    assert (found.against, found.band) == ("documented", 0.02)
    # two scores with that error each, 3.97 standard errors of their difference
    assert found.smallest == (pytest.approx(3.971 * math.sqrt(2) * 0.0063, abs=1e-4),)
    exact = accuracy(Reference(documented={building.SUMS: DocumentedValue(0.9447)}))
    assert exact.smallest == ()
    assert exact.notes == ("a documented score without an error, taken as exact",)
