"""The 15 result tables of the GPUStack H200 lab, against their numbers as awk reads them.

``h200_lab_rows.tsv`` was made from the document by a line of awk that knows a colon and nothing of
labels; the tables are the document's, line by line.
"""

from collections import defaultdict
from pathlib import Path

import pytest
from tables import each

from perfgate.core.measurement import Measurement
from perfgate.runs.result_formats import parse

DATA = Path(__file__).parents[1] / "data" / "vllm_bench"
TABLES = (DATA / "h200_lab_tables.txt").read_text().rstrip().split("\n\n")
METRICS = {
    "Benchmark duration (s)": "duration_s",
    "Request throughput (req/s)": "request_throughput",
    "Output token throughput (tok/s)": "output_throughput",
    "Total Token throughput (tok/s)": "total_token_throughput",
    **{
        f"{statistic} {short} (ms)": f"{short.lower()}_{statistic.lower()}_ms"
        for statistic in ("Mean", "Median", "P99")
        for short in ("TTFT", "TPOT", "ITL")
    },
}
FACTS = {
    "Successful requests": "requests_completed",
    "Maximum request concurrency": "max_concurrency",
    "Total input tokens": "input_tokens",
    "Total generated tokens": "output_tokens",
    "Peak output token throughput (tok/s)": "peak_output_throughput",
    "Peak concurrent requests": "peak_concurrent_requests",
}
DERIVED = {"output_speed_per_user"}


def rows() -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for line in (DATA / "h200_lab_rows.tsv").read_text().splitlines():
        number, label, value = line.split("\t")
        found[int(number)][label] = float(value)
    return found


def measured(table: str) -> Measurement:
    found = parse(table)
    assert found.measurement is not None, found.message
    return found.measurement


def test_there_are_15_tables_of_18_rows_and_one_with_a_limit() -> None:
    assert [len(rows()[number]) for number in range(1, 16)] == [18] * 10 + [19] + [18] * 4
    assert len(TABLES) == len(rows()) == 15


@each("number", range(1, 16))
def test_every_number_is_read(number: int) -> None:
    found, expected = measured(TABLES[number - 1]), rows()[number]
    assert set(expected) <= METRICS.keys() | FACTS.keys()
    for label, value in expected.items():
        place = found.metrics if label in METRICS else found.facts
        assert place[METRICS.get(label) or FACTS[label]] == value, label
    assert set(found.metrics) - DERIVED == {
        METRICS[label] for label in expected if label in METRICS
    }
    assert "unknown_labels" not in found.facts
    assert found.facts["client"] == "vllm-bench"


def test_peaks_are_no_concurrency() -> None:
    """Nine "at once" where the client allows four: all that touch a second count in it."""
    facts = measured(TABLES[10]).facts
    assert (facts["max_concurrency"], facts["peak_concurrent_requests"]) == (4, 9)


def test_answers_that_ended_early_are_seen() -> None:
    assert measured(TABLES[11]).facts["output_tokens"] == 9952
    assert measured(TABLES[11]).facts["osl"] == pytest.approx(99.52)
