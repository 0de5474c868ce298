"""The end of a run on the terminal: short whatever the run, the worst first, then the next step."""

from dataclasses import replace
from typing import Any

from made_runs import facts
from night_runs import broken_night, passed_night, red_night
from run_reports import hostile, of_size

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
