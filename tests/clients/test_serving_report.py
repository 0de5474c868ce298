"""Results of benchmark_serving, vllm bench and sglang.bench_serving: JSON and table.

What the recorded results say is in tests/data/values.json.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from printed_lines import lines_of
from refusals import refused as refusal
from tables import each

from perfgate.clients.serving_report import count_facts, parse, parse_printed
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement

DATA = Path(__file__).parents[1] / "data" / "benchmark_serving"
RESULT: dict[str, Any] = json.loads((DATA / "result.json").read_text())
TABLE = (DATA / "table.txt").read_text()
POINTS = ("mean", "median", "p99")


def from_json(**changes: Any) -> Measurement:
    return parse({key: value for key, value in {**RESULT, **changes}.items() if value is not ...})


def from_text(text: str) -> Measurement:
    return parse_printed(lines_of(text))


def refused(text: str) -> RunError:
    return refusal(from_text, text, error=RunError)


def line(label: str, value: object) -> str:
    """The table with one line's value replaced."""
    lines = TABLE.splitlines()
    (place,) = (i for i, text in enumerate(lines) if text.startswith(f"{label}:"))
    lines[place] = f"{label + ':':<40} {value}"
    return "\n".join(lines) + "\n"


class TestJson:
    @pytest.mark.parametrize("key", ["request_goodput:", "request_goodput"])
    def test_goodput_with_and_without_the_stray_colon(self, key: str) -> None:
        assert from_json(**{key: 0.5}).metrics["request_goodput"] == 0.5

    @each(
        ("changes", "failure", "says"),
        [
            ({"output_throughput": float("inf")}, "no_metrics", "a metric is inf"),
            *(({"mean_tpot_ms": one}, "no_metrics", "") for one in (0.0, -1.0, None, "N/A")),
            ({"median_itl_ms": -0.01}, "no_metrics", "a metric is -0.01"),
            *(({one: ...}, "no_metrics", "") for one in ("duration", "request_throughput")),
            ({"total_token_throughput": ...}, "no_metrics", "no total_token_throughput"),
            ({"completed": 12}, "incomplete", "12 of 16"),
            ({"failed": 3}, "incomplete", "3 requests failed"),
            ({"completed": 0}, "incomplete", "0 of 16"),
            ({"request_throughput": 2.0}, "no_metrics", "contradicts itself"),
            ({f"{one}_ttft_ms": 2e4 for one in POINTS}, "no_metrics", "contradicts itself"),
        ],
    )
    def test_what_is_no_result(self, changes: dict[str, Any], failure: str, says: str) -> None:
        error = refusal(from_json, error=RunError, **changes)
        assert error.failure == failure
        assert says in error.message
        if "mean_tpot_ms" in changes:
            assert error.evidence == (f'"mean_tpot_ms": {json.dumps(changes["mean_tpot_ms"])}',)

    def test_not_streamed(self) -> None:
        # The program puts -1 s for the TTFT that it does not know.
        unknown = {f"{name}_ttft_ms": -1000.0 for name in POINTS}
        found = from_json(**unknown, **{f"{name}_itl_ms": 0.0 for name in POINTS})
        assert not [name for name in found.metrics if name.startswith(("ttft", "tpot", "itl"))]
        assert found.facts["streaming"] is False

    def test_one_token_answers_have_no_time_between_tokens(self) -> None:
        """The programs print 0.00 for what does not exist."""
        completed = RESULT["completed"]
        found = from_json(
            total_output_tokens=completed,
            output_throughput=RESULT["request_throughput"],
            total_token_throughput=(RESULT["total_input_tokens"] + completed) / RESULT["duration"],
            user_throughput=...,
            **{f"{one}_{short}_ms": 0.0 for one in POINTS for short in ("tpot", "itl")},
        )
        assert "itl_mean_ms" not in found.metrics

    def test_all_but_the_mean_of_itl_may_be_zero(self) -> None:
        """Tokens that reach the client together have no time between them."""
        points = ("median", "p90", "p95", "p99")
        found = from_json(**{f"{point}_itl_ms": 0 for point in points}).metrics
        assert {found[f"itl_{point}_ms"] for point in points} == {0}


class TestTable:
    def test_unknown_labels_are_kept(self) -> None:
        text = TABLE.replace("User throughput", "Happiness (%):   99\nUser throughput")
        assert from_text(text).facts["unknown_labels"] == ["Happiness (%)"]

    def test_cut_at_any_line(self) -> None:
        lines = TABLE.splitlines(keepends=True)
        for count in range(len(lines)):
            assert refused("".join(lines[:count])).failure in ("truncated_output", "no_metrics")

    @pytest.mark.parametrize("value", ["0.00", "nan", "N/A", "[result]", "-3.00"])
    def test_a_metric_that_is_no_positive_number(self, value: str) -> None:
        error = refused(line("Output token throughput (tok/s)", value))
        assert error.failure == "no_metrics"
        assert error.evidence[0].endswith(value)

    def test_failed_requests_in_the_banner(self) -> None:
        banner = "=" * 23 + "!FAILED REQUESTS!" + "=" * 23
        told = f"{banner}\nTotal failed requests: 2\nUser throughput"
        assert refused(TABLE.replace("User throughput", told)).evidence == (banner,)

    def test_fewer_requests_than_the_arguments_ask_for(self) -> None:
        lines = line("Successful requests", 12).splitlines()
        kept = [text for text in lines if not text.startswith(("Total requests", "Failed"))]
        error = refused("\n".join(kept) + "\n")
        assert (error.failure, "12 of 16" in error.message) == ("incomplete", True)

    def test_not_streamed_by_its_arguments(self) -> None:
        found = from_text(TABLE.replace("non_streaming=False", "non_streaming=True"))
        assert "ttft_mean_ms" not in found.metrics
        assert found.metrics["e2el_mean_ms"] == 17558.21

    def test_two_results_in_one_file(self) -> None:
        assert "2 results" in refused(TABLE + TABLE).message

    def test_a_percentile_of_itl_may_be_zero(self) -> None:
        assert from_text(line("Median ITL (ms)", "0.00")).metrics["itl_median_ms"] == 0

    @each(
        "label",
        ["Mean ITL (ms)", "Median TPOT (ms)", "Mean TPOT (ms)", "Median TTFT (ms)"]
        + ["Median E2EL (ms)", "Request throughput (req/s)", "Output token throughput (tok/s)"],
    )
    def test_nothing_else_is(self, label: str) -> None:
        assert refused(line(label, "0.00")).message == "a metric is 0"


class TestOutputTokensCountedTwice:
    """A length that was requested is none that was generated."""

    IGNORED = replace(SCENARIO.workload, isl=64, osl=200)
    ENDS = replace(IGNORED, ignore_eos=False)
    SHAREGPT = replace(ENDS, osl=None, dataset="sharegpt")

    def facts(self, reported: Any, encoded: Any) -> dict[str, Any]:
        counts = {"output_tokens": reported, "output_tokens_retokenized": encoded}
        return {**counts, "requests_completed": 10}

    @each(
        ("reported", "encoded"),
        [
            # Texts encoded again are a few percent off; one count alone says nothing.
            *((2000, one) for one in (2000, 1900, 2100, 1801)),
            *((None, 5), (5, None), (0, 5), (True, 5), ("5", 5)),
        ],
    )
    def test_nothing_is_noted(self, reported: Any, encoded: Any) -> None:
        assert count_facts(self.facts(reported, encoded), self.ENDS) == {}

    def test_a_difference_is_noted(self) -> None:
        # Special tokens after an ignored EOS have no text; a server's own count may be far off it.
        for reported, workload in ((2000, self.IGNORED), (1990, self.ENDS)):
            found = count_facts(self.facts(reported, 1500), workload)
            told = f"{reported} tokens reported, 1500 in the answers' text"
            assert found == {"output_count_differs": told}

    def test_what_was_not_generated_is_refused(self) -> None:
        less_than_half, exactly_asked = self.facts(2000, 900), self.facts(2000, 1500)
        told = "2000 output tokens reported, 900 in the answers' text"
        for workload in (self.IGNORED, self.SHAREGPT):
            refusal(count_facts, less_than_half, workload, error=RunError, match=told)
        asked = "lengths that were requested were counted"
        refusal(count_facts, exactly_asked, self.ENDS, error=RunError, match=asked)
