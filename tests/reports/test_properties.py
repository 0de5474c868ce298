"""Properties for JUnit XML: a verdict with its numbers, the build and the baseline."""

from building import judgement, outcome, with_extra_options, with_inert_setting

from perfgate.core.errors import RunError
from perfgate.gate.verdict import Verdict
from perfgate.reports.properties import properties
from perfgate.verdicts.measured import MeasuredBuild, MeasuredControl


def test_every_number_of_a_regression_is_there() -> None:
    assert properties(outcome(injected=("a=1",))) == [
        ("verdict", "REGRESSION"),
        ("scenario", "small-serve"),
        ("probe", "c4"),
        ("summary", "output_throughput -12.3 %"),
        ("injected", "a=1"),
        ("engine", "llama.cpp"),
        ("engine_version", "1.3.0"),
        ("engine_commit", "def456"),
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


def test_what_the_engine_was_given_beyond_the_settings_is_there() -> None:
    extra = outcome(probe=with_extra_options())
    assert dict(properties(extra))["extra_options"] == "server --workers 4"
    assert "extra_options" not in dict(properties(outcome()))


def test_a_setting_that_is_not_in_force_is_there() -> None:
    assert dict(properties(with_inert_setting()))["setting"].endswith("one core has no peers")
    assert "setting" not in dict(properties(outcome()))


def test_what_was_not_judged_has_its_reason_and_its_numbers() -> None:
    bare = outcome(
        verdict=Verdict.NO_BASELINE,
        judgements=(),
        reason="there is no baseline yet",
        compared_with="no baseline",
        synthetic=True,
    )
    found = dict(properties(bare))
    assert found["summary"] == found["reason"] == "there is no baseline yet"
    assert found["synthetic"] == "true"
    assert found["compared_with"] == "no baseline"
    assert found["metric.ttft_mean_ms"] == "300"
    assert "metric.output_throughput.change" not in found


def test_a_verdict_of_a_session_before_says_so() -> None:
    assert ("resumed_from", "2026-11-21T04:00:00+00:00") in properties(
        outcome(resumed_from="2026-11-21T04:00:00+00:00")
    )
    assert "resumed_from" not in dict(properties(outcome()))


def test_an_error_has_its_class() -> None:
    error = RunError("oom", "the server ended")
    failed = outcome(verdict=Verdict.ERROR, judgements=(), error=error, build=None, measured=())
    found = dict(properties(failed))
    assert (found["error_class"], found["summary"]) == ("oom", "oom: the server ended")
    assert not [name for name in found if name.startswith(("metric.", "engine"))]


def test_the_image_of_the_build_is_named() -> None:
    build = MeasuredBuild("tensorrt-llm", "1.3.0", "0a1b2c3", "engine:1", "engine@sha256:2")
    found = dict(properties(outcome(build=build)))
    assert (found["image"], found["image_digest"]) == ("engine:1", "engine@sha256:2")


def test_the_anchor_does_not_hide_the_baseline() -> None:
    anchor = judgement(against="anchor", change=-0.2, waiver="let through by Ada")
    found = dict(properties(outcome(judgements=(judgement(), anchor))))
    assert found["metric.output_throughput.change"] == "-12.3 %"
    assert found["metric.output_throughput.anchor.change"] == "-20.0 %"
    assert found["metric.output_throughput.anchor.waiver"] == "let through by Ada"


def test_a_mark_and_the_controls_behind_it_are_there() -> None:
    shifted = judgement(verdict=Verdict.PASS, mark="HOST_SHIFT", controls_used=2)
    control = MeasuredControl("baseline", MeasuredBuild("llama.cpp", "1.2.0", "abc123"), 2)
    found = dict(
        properties(outcome(verdict=Verdict.PASS, judgements=(shifted,), controls=(control,)))
    )
    assert found["verdict"] == "PASS"
    assert found["mark"].startswith("HOST_SHIFT: machine, not build")
    assert found["control"] == "llama.cpp 1.2.0, commit abc123, 2 starts"
    assert found["metric.output_throughput.mark"] == "HOST_SHIFT"
    assert found["metric.output_throughput.controls"] == "2"


def test_a_loss_without_a_control_says_why() -> None:
    lost = judgement(mark="NO_CONTROL")
    none = MeasuredControl("baseline", None, 0, "its image is gone")
    found = dict(properties(outcome(judgements=(lost,), controls=(none,))))
    assert found["mark"] == "NO_CONTROL: no control: the machine is not excluded"
    assert found["control"] == "none (its image is gone)"
