"""Markdown: what a reviewer sees first, and that it stays short whatever the run."""

from dataclasses import replace

import pytest
from building import applied
from markdown_it import MarkdownIt
from run_reports import judged, report, result
from tables import each

from perfgate.core.verdict import Verdict
from perfgate.reports.formats.markdown import MOST_CHARACTERS, MOST_LINES, MarkdownFormat
from perfgate.reports.run_report import RunReport


def markdown(of: RunReport) -> str:
    return MarkdownFormat().render(of)


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
