"""trtllm-bench's report, as JSON and as printed: both generations of labels, whole and excerpts.

What the recorded reports say is in tests/data/values.json.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from bench_reports import Run, as_json, as_text, excerpt, runs
from hypothesis import given
from printed_lines import lines_of
from refusals import refused as refusal
from tables import each

from perfgate.clients.trtllm_bench_report import is_report, parse, parse_printed
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import METRICS

RECORDED = Path(__file__).parents[1] / "data" / "trtllm_bench"
STREAMED = Run(streaming=True, mtp=True)
NO_NUMBERS = ["0.0000", "nan", "inf", "-1.0000", "N/A", "<value>"]


def read(text: str) -> Measurement:
    return parse_printed(lines_of(text))


def refused(text: str) -> RunError:
    return refusal(read, text, error=RunError)


def with_line(text: str, label: str, value: str) -> tuple[str, str]:
    """The text with one row's value replaced, and that row."""
    lines = text.splitlines()
    (place,) = (i for i, line in enumerate(lines) if line.startswith(f"{label}:"))
    lines[place] = f"{label}: {value}"
    return "\n".join(lines), lines[place]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The JSON report with one field changed, or removed if the value is `...`."""
    report = copy.deepcopy(as_json(STREAMED))
    *sections, key = path.split(".")
    place = report
    for section in sections:
        place = place[section]
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return report


class TestJson:
    def test_metrics_are_canonical_and_in_our_units(self) -> None:
        found = parse(as_json(STREAMED))
        expected = {
            "duration_s": 2.0,
            "request_throughput": 50.0,
            "output_throughput": 6400.0,
            "output_throughput_per_gpu": 800.0,
            "ttft_mean_ms": 150.0,
            "ttft_p95_ms": 165.0,
            "e2el_median_ms": 1485.0,
            "acceptance_length": 2.5,
        }
        assert set(found.metrics) <= set(METRICS)
        assert {name: found.metrics[name] for name in expected} == pytest.approx(expected)
        shown = {
            **{"client_version": "1.1.0rc5", "backend": "Pytorch", "kv_cache_dtype": "FP8"},
            **{"quantization": "NVFP4", "tp": 8, "ep": 8, "gpus": 8, "max_batch_size": 384},
            **{"max_num_tokens": 1536, "kv_cache_fraction": 0.85, "requests_completed": 100},
            **{"isl": 128.0, "osl": 128.0, "gpu": "NVIDIA B200", "decoding_mode": "MTP"},
            "streaming": True,
        }
        assert {name: found.facts[name] for name in shown} == shown
        json.dumps(found.facts, allow_nan=False)

    def test_what_may_be_missing_or_more(self) -> None:
        assert "gpu" not in parse(changed("machine", None)).facts
        total = parse(changed("performance.system_total_throughput_tok_s", ...))
        assert "total_token_throughput" not in total.metrics
        assert parse(changed("performance.goodness", 3)).facts["unknown_labels"] == ["goodness"]

    @each("field", ["performance.request_throughput_req_s", "streaming_metrics.avg_ttft_ms"])
    @each("value", [0, -1.0, None, "N/A", float("nan"), float("inf"), ...])
    def test_a_metric_that_is_no_positive_number(self, field: str, value: object) -> None:
        error = refusal(parse, changed(field, value), error=RunError)
        assert error.failure == "no_metrics"
        assert field.partition(".")[2] in str(error)

    @each(
        ("field", "value"),
        [
            ("request_info.num_requests", 50),
            ("request_info.avg_output_length", 28.0),
            ("request_info.avg_input_length", 1024.0),
            ("world_info.world_size", 16),
            ("performance.output_throughput_per_user_tok_s", 1e6),
            ("streaming_metrics.tpot_percentiles.average", 99.0),
            ("streaming_metrics.avg_tpot_ms", 99.0),
        ],
    )
    def test_numbers_that_contradict_each_other(self, field: str, value: float) -> None:
        refusal(parse, changed(field, value), error=RunError, match="contradicts itself")

    @pytest.mark.parametrize("section", ["performance", "request_info"])
    def test_a_section_that_is_missing(self, section: str) -> None:
        report = changed(section, ...)
        assert not is_report(report)
        refusal(parse, report, error=RunError, match=r"the report has no|num_requests")


class TestPrinted:
    def test_drafts_and_the_machine_are_read(self) -> None:
        found = read(as_text(STREAMED))
        assert found.metrics["acceptance_length"] == 2.5
        assert found.metrics["draft_acceptance_rate"] == 0.5
        assert (found.facts["decoding_mode"], found.facts["gpu"]) == ("MTP", "NVIDIA B200")

    def test_unknown_labels_are_kept(self) -> None:
        more = "Energy (J):      12.5\nTotal Latency (ms):"
        text = as_text(Run()).replace("Total Latency (ms):", more)
        assert read(text).facts["unknown_labels"] == ["Energy (J)"]

    def test_a_breakdown_that_a_release_does_not_print_is_not_missed(self) -> None:
        lines = as_text(Run(streaming=True), 1).splitlines()
        kept = [line for line in lines if "Latency]" not in line and "Latency Break" not in line]
        found = read("\n".join(kept)).metrics
        assert found["ttft_p99_ms"] > 0
        assert "e2el_p99_ms" not in found

    def test_prefixes_before_every_line(self) -> None:
        prefix = "[1,0]<stdout>:[08/05/2025-10:11:12] [TRT-LLM] [I] "
        text = "".join(f"{prefix}{line}\r\n" for line in as_text(STREAMED).splitlines())
        assert read(text) == read(as_text(STREAMED))

    @each("generation", [1, 2])
    @each("run", [Run(), Run(streaming=True), STREAMED])
    def test_cut_at_any_line_there_is_never_a_metric_missing(self, run, generation) -> None:
        whole = as_text(run, generation)
        metrics = read(whole).metrics
        lines = whole.splitlines(keepends=True)
        # Only the rule that closes the report may be missing.
        assert read("".join(lines[:-1])).metrics == metrics
        for count in range(len(lines) - 1):
            assert refused("".join(lines[:count])).failure in ("truncated_output", "no_metrics")

    def test_an_excerpt_that_stops_in_a_breakdown(self) -> None:
        text = (RECORDED / "first_generation_streaming.txt").read_text()
        lines = text.splitlines(keepends=True)
        overview = next(i for i, line in enumerate(lines) if line.startswith("-- "))
        for count in range(overview + 1, len(lines)):
            assert refused("".join(lines[:count])).failure == "truncated_output"

    @each("value", NO_NUMBERS)
    def test_a_metric_that_is_no_positive_number(self, value: str) -> None:
        text, line = with_line(excerpt(Run()), "Total Output Throughput (tokens/sec)", value)
        error = refused(text)
        assert (error.failure, error.evidence) == ("no_metrics", (line,))

    @each(
        ("label", "value"),
        [
            ("Total Output Throughput (tokens/sec)", "3200.0000"),
            ("Per GPU Output Throughput (tps/gpu)", "6400.0000"),
            ("Number of requests", "90"),
            ("[Latency] AVERAGE", "1400.0000"),
            ("[Latency] P50    ", "1900.0000"),
        ],
    )
    def test_numbers_that_contradict_each_other(self, label: str, value: str) -> None:
        error = refused(with_line(as_text(Run()), label, value)[0])
        assert error.failure == "no_metrics"
        assert "contradicts itself" in error.message

    def test_rows_that_are_cut_and_reports_that_are_two(self) -> None:
        text = excerpt(Run())
        assert refused(text[: text.rindex(":") + 1]).failure == "truncated_output"
        lines = excerpt(Run(streaming=True)).splitlines()
        assert refused("\n".join(lines[:-1])).failure == "truncated_output"
        assert refused("Aborted!\n").failure == "no_metrics"
        error = refused(text + excerpt(Run(duration_ms=2500.0)))
        assert (error.failure, "2 reports" in error.message) == ("no_metrics", True)


@given(runs())
def test_both_generations_and_json_say_the_same(run: Run) -> None:
    wanted, first, found = parse(as_json(run)), read(as_text(run, 1)), read(as_text(run, 2))
    assert first.metrics == found.metrics
    assert {**found.facts, **first.facts} == found.facts
    assert set(found.metrics) == set(wanted.metrics)
    for name, value in wanted.metrics.items():
        assert found.metrics[name] == pytest.approx(value, rel=1e-4, abs=1e-4)
    shared = set(found.facts) & set(wanted.facts) - {"concurrency_mean", "output_speed_percentiles"}
    shared -= {name for name in shared if name.endswith("_ms")}
    assert {n: found.facts[n] for n in shared} == {n: wanted.facts[n] for n in shared}
