"""Properties for JUnit XML: a verdict with its numbers, the build and the baseline."""

from building import applied, judgement, outcome

from perfgate.core.measurement import MeasuredBuild
from perfgate.reports.formats.junit import properties


def test_every_number_of_a_regression_is_there() -> None:
    build = MeasuredBuild("llama.cpp", "1.3.0", "def456", "engine:1", "engine@sha256:2")
    found = outcome(injected=("a=1",), build=build, resumed_from="2026-11-21T04:00:00+00:00")
    assert properties(found) == [
        ("verdict", "REGRESSION"),
        ("scenario", "small-serve"),
        ("probe", "c4"),
        ("summary", "output_throughput -12.3 %"),
        ("resumed_from", "2026-11-21T04:00:00+00:00"),
        ("injected", "a=1"),
        ("engine", "llama.cpp"),
        ("engine_version", "1.3.0"),
        ("engine_commit", "def456"),
        ("image", "engine:1"),
        ("image_digest", "engine@sha256:2"),
        ("compared_with", "llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts"),
        ("metric.output_throughput", "1082.696878"),
        ("metric.output_throughput.unit", "tokens/s"),
        ("metric.output_throughput.n", "2"),
        ("metric.ttft_mean_ms", "300"),
        ("metric.ttft_mean_ms.unit", "ms"),
        ("metric.ttft_mean_ms.n", "2"),
        ("metric.output_throughput.baseline", "1234.5"),
        ("metric.output_throughput.change", "-12.3 %"),
        ("metric.output_throughput.interval", "-14.0 … -10.5 %"),
        ("metric.output_throughput.band", "-2.0 %"),
        ("metric.output_throughput.verdict", "REGRESSION"),
    ]


def test_the_anchor_does_not_hide_the_baseline() -> None:
    anchor = judgement(against="anchor", change=-0.2, waiver=applied("let through by Ada"))
    found = dict(properties(outcome(judgements=(judgement(), anchor))))
    assert found["metric.output_throughput.change"] == "-12.3 %"
    assert found["metric.output_throughput.anchor.change"] == "-20.0 %"
    assert found["metric.output_throughput.anchor.waiver"] == "let through by Ada"
