"""OpenMetrics: read by Prometheus' own parser; rounded so that noise gives the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from run_reports import judged, of_size, report, result

from perfgate.core.metrics import METRICS
from perfgate.gate.verdict import Verdict
from perfgate.reports.formats.base import ReportContext
from perfgate.reports.formats.openmetrics import OpenmetricsFormat, rounded
from perfgate.reports.run_report import RunReport
from perfgate.verdicts.measured import MeasuredMetric

SCORE = "accuracy:gsm8k:exact_match:strict-match"


def text(of: RunReport) -> str:
    return OpenmetricsFormat().render(of, ReportContext())


def samples(of: RunReport) -> dict[str, list[Sample]]:
    return {one.name: one.samples for one in text_string_to_metric_families(text(of))}


def of_values(**values: float) -> RunReport:
    """A report of one test whose metrics are all judged."""
    judgements = tuple(judged(Verdict.PASS, metric=name) for name in values)
    measured = tuple(MeasuredMetric(name, "", one, (one,)) for name, one in values.items())
    return report(result(0, judgements=judgements, measured=measured))


@pytest.mark.parametrize("number", [0, 1, 50, 500])
def test_prometheus_reads_it_and_the_end_is_told(number: int) -> None:
    assert text(of_size(number)).endswith("# EOF\n")
    assert "perfgate_run" in samples(of_size(number))


def test_units_are_base_units_and_the_ends_of_names() -> None:
    found = samples(of_values(output_throughput=1000.0, ttft_p99_ms=250.0, duration_s=60.0))
    (speed,) = found["perfgate_output_throughput_tokens_per_second"]
    assert speed.labels == {"scenario": "b200-scenario-000", "probe": "c1"}
    (wait,) = found["perfgate_ttft_seconds"]
    assert (wait.labels["stat"], wait.value) == ("p99", 0.25)
    assert found["perfgate_duration_seconds"][0].value == 60.0
    assert found["perfgate_verdict"][0].labels["state"] == "PASS"


def test_every_metric_of_the_table_has_a_name_and_a_unit() -> None:
    found = samples(of_values(**dict.fromkeys(METRICS, 123.4)))
    values = [one for name, held in found.items() for one in held if "scenario" in one.labels]
    assert len(values) == len(METRICS) + 1  # and the verdict


def test_a_score_names_its_task_metric_and_filter() -> None:
    (score,) = samples(of_values(**{SCORE: 0.9563}))["perfgate_accuracy_ratio"]
    assert score.value == 0.955
    told = {name: score.labels[name] for name in ("task", "metric", "filter")}
    assert told == {"task": "gsm8k", "metric": "exact_match", "filter": "strict-match"}


def test_only_judged_metrics_have_a_line_and_what_is_not_known_has_none() -> None:
    found = samples(report(result(0), result(1, Verdict.ERROR), result(2, None)))
    assert "perfgate_ttft_seconds" not in found
    assert len(found["perfgate_output_throughput_tokens_per_second"]) == 1
    assert len(found["perfgate_verdict"]) == 2
    assert not [one for held in found.values() for one in held if one.value == 0]


def test_a_value_of_0_that_was_measured_is_there() -> None:
    (gap,) = samples(of_values(itl_median_ms=0.0))["perfgate_itl_seconds"]
    assert gap.value == 0


def test_noise_within_a_step_gives_the_same_text() -> None:
    assert text(of_values(output_throughput=1000.9)) == text(of_values(output_throughput=999.1))
    assert text(of_values(output_throughput=1000.0)) != text(of_values(output_throughput=980.0))


@given(st.floats(1e-6, 1e9), st.sampled_from([0.005, 0.01, 0.03, 0.05]))
def test_rounding_moves_a_value_by_half_a_step_at_most(value: float, share: float) -> None:
    told = rounded(value, share * value)
    assert "e" not in told
    assert abs(float(told) - value) <= share * value / 2 * (1 + 1e-6)


def test_steps_are_1_2_or_5() -> None:
    assert [rounded(1234.5678, step) for step in (0.3, 3, 6, 30, 600)] == [
        *("1234.6", "1234", "1235", "1240", "1000"),
    ]


def test_synthetic_values_are_labelled() -> None:
    one = result(0, synthetic=True)
    found = samples(report(one, synthetic=True))
    assert found["perfgate_run"][0].labels["synthetic"] == "true"
    told = [one for name, held in found.items() if name != "perfgate_run" for one in held]
    assert len(told) > 3
    assert all(one.labels["synthetic"] == "true" for one in told)


def test_long_names_stay_two() -> None:
    both = [result(0, probe="x" * 400 + end, name=end) for end in "ab"]
    assert len(samples(report(*both))["perfgate_verdict"]) == 2
