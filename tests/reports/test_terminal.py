"""The end of a run on the terminal: short whatever the run, the worst first, then the next step."""

from dataclasses import replace
from functools import partial
from typing import Any

from made_runs import facts
from night_runs import (
    SPEED,
    SUMS,
    WAIT,
    broken_night,
    judged,
    passed_night,
    red_night,
    verdict,
)
from run_reports import hostile, of_size

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


def test_a_machine_that_measured_its_own_noise_says_what_it_could_show() -> None:
    turns = partial(judged, verdict=Verdict.PASS, is_interleaved=True)
    points = [
        verdict(f"local-c{n}", Verdict.PASS, turns(SPEED, change=-0.003), turns(WAIT, change=0.004))
        for n in (1, 4)
    ]
    sums = verdict("local-sums", Verdict.PASS, judged(SUMS, Verdict.PASS, 0.0))
    lines = lines_of(night([*points, sums]))
    assert lines[0] == (
        "PASS           local-c1: output_throughput -0.3 % (interval -1.5 … +0.9 %, band -2.0 %), "
        "ttft_p99_ms +0.4 % (interval -0.8 … +1.6 %, band +5.0 %)"
    )
    assert lines[2].startswith("PASS           local-sums: accuracy")
    assert "interval" not in lines[2]
    assert shown_at(lines, 100) <= 13  # beside the run folder and what make local says


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
