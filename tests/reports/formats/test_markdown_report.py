"""Markdown: what a reviewer sees first, and that it stays short whatever the run."""

from dataclasses import replace

import pytest
from building import applied
from markdown_it import MarkdownIt
from run_reports import judged, of_size, report, result
from tables import each

from perfgate.core.verdict import Verdict
from perfgate.reports.formats.base import ReportContext
from perfgate.reports.formats.markdown import MOST_CHARACTERS, MOST_LINES, MarkdownFormat
from perfgate.reports.run_report import RunReport


def markdown(of: RunReport) -> str:
    return MarkdownFormat().render(of, ReportContext())


def test_the_verdict_build_reference_counts_and_hours_come_first() -> None:
    lines = markdown(of_size(50)).splitlines()
    assert lines[0] == "## perfgate: REGRESSION"
    assert lines[2].endswith("(exit status 1).")
    assert lines[4].startswith("- build: tensorrt-llm 1.3.0, commit 0a1b2c3d4e5f")
    assert lines[5].startswith("- compared with: tensorrt-llm 1.2.0 of 2026-11-05")
    assert lines[6] == (
        "- 50 tests: 3 REGRESSION, 3 ERROR, 3 NOT_COMPARABLE, 3 NO_BASELINE, 3 INCONCLUSIVE, "
        "3 IMPROVEMENT, 29 PASS, 3 not run"
    )
    assert lines[7] == "- 40.0 GPU hours, 5.0 hours of the clock; run `20261123-1`"


def test_what_got_worse_most_is_the_first_row() -> None:
    most = judged(Verdict.REGRESSION, -0.04, band=0.01)
    few = result(0, Verdict.REGRESSION, judgements=(judged(Verdict.REGRESSION, -0.06),))
    waived = judged(Verdict.REGRESSION, -0.9, waiver=applied("Ada"))
    judgements = (most, judged(Verdict.PASS, -0.9), waived)
    many = result(1, Verdict.REGRESSION, judgements=judgements)
    rows = [one for one in markdown(report(few, many)).splitlines() if one.startswith("| `")]
    assert rows == [
        "| `b200-scenario-000-c2` | `output_throughput` | -4.0 % | -5.0 … -3.0 % | -1.0 % |",
        "| `b200-scenario-000-c1` | `output_throughput` | -6.0 % | -7.0 … -5.0 % | -2.0 % |",
    ]


def test_a_lower_latency_is_no_loss() -> None:
    slower = judged(Verdict.REGRESSION, 0.06, metric="tpot_mean_ms")
    faster = judged(Verdict.REGRESSION, -0.5, metric="ttft_mean_ms")
    text = markdown(report(result(0, Verdict.REGRESSION, judgements=(faster, slower))))
    assert text.index("tpot_mean_ms") < text.index("ttft_mean_ms")


def test_marks_references_and_verdicts_without_numbers_are_told() -> None:
    marked = judged(Verdict.REGRESSION, mark="HOST_SHIFT", against="anchor")
    claim = result(1, Verdict.REGRESSION, judgements=(), reason="A is not faster than B")
    text = markdown(report(result(0, Verdict.REGRESSION, judgements=(marked,)), claim))
    assert "`output_throughput` since the anchor | -5.0 %, HOST_SHIFT |" in text
    assert "| A is not faster than B | - | - | - |" in text


def test_equal_errors_and_reasons_are_one_line() -> None:
    text = markdown(of_size(500))
    assert "- oom, 25 tests: the server ran out of GPU memory: `b200-scenario-000-c4`, " in text
    assert "and 21 more" in text
    assert "- not run, 25 tests: needs 8 GPUs of type B200, there is none: " in text


def test_rerun_lines_and_what_passed_are_folded() -> None:
    text = markdown(of_size(50))
    before, _, folded = text.partition("<details><summary>Rerun</summary>")
    assert "pytest" not in before
    assert "pytest 'perf_tests/test_serving.py::test_serving[b200-scenario-000-c1]'" in folded
    assert "Passed: `b200-scenario-001-c4`, " in folded
    assert "Passed" not in before
    assert text.count("<details>") == text.count("</details>") == 2


def test_waived_losses_are_no_regressions_and_are_told() -> None:
    waived = judged(Verdict.REGRESSION, waiver=applied("Ada, until 2026-12-01: known"))
    text = markdown(report(result(0, Verdict.PASS, judgements=(waived,)), status=0))
    assert "Regressed" not in text
    assert "`b200-scenario-000-c1`: `output_throughput` -5.0 %: Ada, until 2026-12-01" in text


def test_synthetic_numbers_are_stamped() -> None:
    one = result(0, Verdict.REGRESSION, synthetic=True)
    text = markdown(report(one, synthetic=True, status=13))
    assert text.startswith("## SYNTHETIC perfgate: REHEARSED\n")
    assert "**Stand-ins made these numbers: they say nothing of any engine.**" in text
    assert "| synthetic `b200-scenario-000-c1` |" in text


@pytest.mark.parametrize(
    ("status", "told"), [(None, "UNFINISHED"), (0, "PASSED"), (2, "BROKEN_OFF"), (12, "NOT_JUDGED")]
)
def test_how_it_ended_is_one_word(status: int | None, told: str) -> None:
    assert markdown(report(status=status)).startswith(f"## perfgate: {told}\n")


@each("number", [0, 120])
@each("kinds", [[*Verdict, None], *([one] for one in Verdict)], ids=str)
def test_it_is_short_whatever_the_run(number: int, kinds: list[Verdict | None]) -> None:
    results = [result(place, kinds[place % len(kinds)]) for place in range(number)]
    different = [
        replace(one, name=f"{place}-{'n' * 400}", reason=f"{place} {'r' * 400}", rerun="x" * 400)
        for place, one in enumerate(results)
    ]
    for some in (results, different):
        text = markdown(report(*some, waiver_faults=("w" * 999,) * 99, merged=("m",) * 99))
        assert text.count("\n") <= MOST_LINES < 60
        assert len(text.encode()) <= MOST_CHARACTERS < 65_536


def test_what_does_not_fit_is_left_out_from_the_end_and_named() -> None:
    results = [
        result(place, verdict, name=f"{verdict} {place} {'n' * 90}")
        for place, verdict in enumerate([*Verdict, None] * 30)
    ]
    text = markdown(report(*results, suspicion="s", waiver_faults=("w",) * 9))
    last = text.splitlines()[-1]
    assert last.startswith("Left out for length: ")
    assert last.endswith("; report.html and report.json have it.")
    assert "### Regressed" in text
    for block in MarkdownIt("commonmark").parse(text):
        assert block.type != "fence" or block.markup == "```"
    assert text.count("<details>") == text.count("</details>")
