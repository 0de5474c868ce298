"""The end of a run on the terminal: short whatever the run, the worst first, then the next step."""

from dataclasses import replace
from typing import Any

from building import with_inert_setting
from made_runs import facts
from night_runs import broken_night, passed_night, red_night
from run_reports import hostile, of_size, result
from run_reports import report as report_with

from perfgate.core.measurement import MeasuredBuild, MeasuredMetric
from perfgate.core.verdict import Verdict
from perfgate.reports.run_report import RunReport, report_of
from perfgate.reports.run_text import terminal_lines
from perfgate.runs.exit_status import ExitStatus


def lines_of(report: RunReport, status: ExitStatus | None = ExitStatus.PASSED) -> list[str]:
    return [text for text, _ in terminal_lines(report, status)]


def night(records: Any) -> RunReport:
    return report_of(facts("20261123-1", "01:00"), records)


def shown_at(lines: list[str], width: int) -> int:
    """How many lines of a terminal they take."""
    return sum(-(-len(line) // width) for line in lines)


def test_192_tests_that_passed_are_told_in_25_lines() -> None:
    lines = lines_of(night(passed_night(48, 4)))
    assert shown_at(lines, 100) <= 25
    assert "PASS           192 tests" in lines


def test_three_tests_that_passed_are_told_in_15_lines_each_with_its_changes() -> None:
    lines = lines_of(night(passed_night(1, 3)))
    assert shown_at(lines, 100) <= 15
    assert lines[0] == "PASS           r1s0-c1: output_throughput -0.1 %, ttft_p99_ms +0.4 %"


def test_no_line_is_long_but_a_command_and_no_run_is_told_at_length() -> None:
    every = [hostile(), of_size(500), *map(night, (red_night(), broken_night()))]
    for report in every:
        lines = lines_of(report, ExitStatus.REGRESSION)
        assert len(lines) <= 90
        texts = [line for line in lines if not line.strip().startswith("rerun: ")]
        assert max(map(len, texts)) <= 160


def test_only_what_is_well_is_good_news_and_numbers_of_stand_ins_never_are() -> None:
    made = night(red_night())
    good = [text.split()[0] for text, is_good in terminal_lines(made, None) if is_good]
    assert set(good) == {"PASS", "IMPROVEMENT"}
    synthetic = replace(made, synthetic=True)
    assert not any(is_good for _, is_good in terminal_lines(synthetic, None))


def unjudged(number: int, **changes: Any) -> Any:
    measured = (
        MeasuredMetric("output_throughput", "tokens/s", 43146.4, (43146.4,)),
        MeasuredMetric("ttft_mean_ms", "ms", 250.0, (250.0,)),
        MeasuredMetric("duration_s", "s", 12.5, (12.5,)),
    )
    made = result(number, Verdict.NO_BASELINE, judgements=(), reason="none yet", measured=measured)
    return replace(made, **changes)


def test_of_tests_that_nothing_was_compared_with_the_main_numbers_are_shown() -> None:
    lines = [" ".join(line.split()) for line in lines_of(report_with(unjudged(0)))]
    start = lines.index("test metric value unit n")
    assert lines[start + 1 : start + 4] == [
        "b200-scenario-000-c1 output_throughput 43,146 tokens/s 1",
        "b200-scenario-000-c1 ttft_mean_ms 250 ms 1",
        "and 1 more value in summary.md",
    ]
    many = lines_of(report_with(*(unjudged(number) for number in range(30))))
    assert "and 82 more values in summary.md" in many


def test_builds_are_told_once_and_of_many_a_few() -> None:
    same = lines_of(report_with(unjudged(0), unjudged(1)))
    assert sum(line.startswith("build: ") for line in same) == 1
    builds = [MeasuredBuild("llama.cpp", f"1.{n}", f"1.{n}") for n in range(7)]
    many = lines_of(report_with(*(unjudged(n, build=one) for n, one in enumerate(builds))))
    assert [line for line in many if line.startswith("build: ")] == [
        "build: llama.cpp 1.0",
        "build: llama.cpp 1.1",
        "build: 5 more in summary.md",
    ]
    assert not any(
        line.startswith(("build: ", "compared with: "))
        for line in lines_of(report_with(unjudged(0, build=None, compared_with="")))
    )


def test_of_settings_a_line_of_several_scenarios_is_told_once_and_limits_last() -> None:
    (inert,) = with_inert_setting().settings
    made = report_with(
        unjudged(0, settings=("limited: 48 of 1000", inert)), unjudged(5, settings=(inert,))
    )
    assert [line for line in lines_of(made) if line.startswith("setting: ")] == [
        f"setting: b200-scenario-000 and 1 more: {inert}",
        "setting: b200-scenario-000: limited: 48 of 1000",
    ]
