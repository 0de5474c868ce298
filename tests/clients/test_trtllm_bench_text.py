"""trtllm-bench's printed report: both generations of labels, whole reports and excerpts."""

from pathlib import Path

import pytest
from bench_reports import Run, as_text, excerpt, runs
from hypothesis import given
from tables import each

from perfgate.clients.report_lines import lines_of
from perfgate.clients.trtllm_bench_text import parse
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement

RECORDED = Path(__file__).parents[1] / "data" / "trtllm_bench"
STREAMED = Run(streaming=True, mtp=True)


def read(text: str) -> Measurement:
    return parse(lines_of(text)).measurement()


def refused(text: str) -> RunError:
    with pytest.raises(RunError) as caught:
        read(text)
    return caught.value


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


class TestDocumentedExcerpts:
    """The blocks of the best-practice document, as they stand there."""

    def test_b200_max_throughput_with_fp8_kv_cache(self) -> None:
        assert read(recorded("b200_fp8kv_max_throughput")).metrics == {
            "request_throughput": 21.0675,
            "output_throughput": 43146.2042,
            "total_token_throughput": 65100.6376,
            "duration_s": pytest.approx(5443.839814),
            "mean_request_latency_ms": 332826.9898,
            "e2el_mean_ms": 332826.9898,
            "output_throughput_per_user": 6.1806,
            "output_throughput_per_gpu": 5393.2755,
        }

    @each(
        ("name", "values"),
        [
            (
                "b200_min_latency",  # with the older labels
                {
                    "output_throughput_per_user": 274.7188,
                    "output_throughput_per_gpu": 34.3021,
                    "total_token_throughput": 414.0461,
                    "ttft_mean_ms": None,
                },
            ),
            ("h200_min_latency", {"request_throughput": 0.0772, "total_token_throughput": None}),
            ("h200_max_throughput", {"output_throughput": 11489.2671, "tpot_mean_ms": None}),
            (
                "first_generation_streaming",
                {
                    "output_speed_per_user": 5.4656,
                    "tpot_mean_ms": 182.9639,
                    "ttft_p95_ms": 101978.4566,
                    "e2el_median_ms": 78509.2102,
                },
            ),
            ("v32_min_latency_tabs", {"output_speed_per_user": 312.0708, "ttft_mean_ms": 425.9885}),
        ],
    )
    def test_others(self, name: str, values: dict[str, float | None]) -> None:
        found = read(recorded(name)).metrics
        assert {metric: found.get(metric) for metric in values} == values


class TestWholeReport:
    def test_facts_are_what_the_report_shows(self) -> None:
        found = read(recorded("whole_0.21_streaming"))
        shown = {
            "client": "trtllm-bench",
            "client_version": "0.21.0rc0",
            "backend": "Pytorch",
            "requests_completed": 100,
            "isl": 128.0,
            "osl": 128.0,
            "tp": 1,
            "pp": 1,
            "gpus": 1,
            "max_batch_size": 3840,
            "max_num_tokens": 7680,
            "kv_cache_fraction": 0.9,
            "concurrency_mean": 94.605,
            "dataset_requests": 100,
            "streaming": True,
            "e2el_max_ms": 1137.6817,
        }
        assert {name: found.facts[name] for name in shown} == shown
        assert not {"ep", "kv_cache_dtype"} & set(found.facts)  # printed as None
        assert "unknown_labels" not in found.facts

    def test_healthy_lines_with_scary_words_change_nothing(self) -> None:
        text = recorded("whole_0.21_streaming")
        assert "free memory 1.63 of total memory 5.87" in text
        assert read(text).metrics["output_throughput"] == 11076.77

    def test_drafts_are_read(self) -> None:
        found = read(as_text(STREAMED))
        assert found.metrics["acceptance_length"] == 2.5
        assert found.metrics["draft_acceptance_rate"] == 0.5
        assert found.facts["decoding_mode"] == "MTP"
        assert found.facts["gpu"] == "NVIDIA B200"

    def test_unknown_labels_are_kept(self) -> None:
        text = as_text(Run()).replace(
            "Total Latency (ms):", "Energy (J):      12.5\nTotal Latency (ms):"
        )
        assert read(text).facts["unknown_labels"] == ["Energy (J)"]

    def test_a_breakdown_that_a_release_does_not_print_is_not_missed(self) -> None:
        lines = as_text(Run(streaming=True), 1).splitlines()
        kept = [line for line in lines if "Latency]" not in line and "Latency Break" not in line]
        found = read("\n".join(kept)).metrics
        assert found["ttft_p99_ms"] > 0
        assert "e2el_p99_ms" not in found

    def test_prefixes_before_every_line(self) -> None:
        prefixed = "".join(
            f"[1,0]<stdout>:[08/05/2025-10:11:12] [TRT-LLM] [I] {line}\r\n"
            for line in as_text(STREAMED).splitlines()
        )
        assert read(prefixed) == read(as_text(STREAMED))


class TestCutReports:
    @each("generation", [1, 2])
    @each("run", [Run(), Run(streaming=True), STREAMED])
    def test_cut_at_any_line_there_is_never_a_metric_missing(
        self, run: Run, generation: int
    ) -> None:
        whole = as_text(run, generation)
        metrics = read(whole).metrics
        lines = whole.splitlines(keepends=True)
        # Only the rule that closes the report may be missing.
        assert read("".join(lines[:-1])).metrics == metrics
        for count in range(len(lines) - 1):
            assert refused("".join(lines[:count])).failure in ("truncated_output", "no_metrics")

    def test_a_pasted_report_of_1_1_0rc2_that_stops(self) -> None:
        error = refused(recorded("cut_1.1.0rc2"))
        assert error.failure == "truncated_output"
        assert error.evidence == ("Number of Sequences:  16",)

    def test_an_excerpt_that_stops_in_a_breakdown(self) -> None:
        lines = recorded("first_generation_streaming").splitlines(keepends=True)
        overview = next(i for i, line in enumerate(lines) if line.startswith("-- "))
        for count in range(overview + 1, len(lines)):
            assert refused("".join(lines[:count])).failure == "truncated_output"


class TestAbsurdReports:
    @each("value", ["0.0000", "nan", "inf", "-1.0000", "N/A", "<value>"])
    def test_a_metric_that_is_no_positive_number(self, value: str) -> None:
        lines = excerpt(Run()).splitlines()
        place = next(i for i, line in enumerate(lines) if line.startswith("Total Output"))
        lines[place] = f"Total Output Throughput (tokens/sec):             {value}"
        error = refused("\n".join(lines))
        assert error.failure == "no_metrics"
        assert error.evidence == (lines[place],)

    @each(
        ("label", "value"),
        [
            ("Request Throughput (req/sec)", "100.0000"),
            ("Total Output Throughput (tokens/sec)", "3200.0000"),
            ("Total Token Throughput (tokens/sec)", "6400.0000"),
            ("Per User Output Throughput [w/ ctx] (tps/user)", "9999.0000"),
            ("Per GPU Output Throughput (tps/gpu)", "6400.0000"),
            ("Average request latency (ms)", "9999.0000"),
            ("Number of requests", "90"),
            ("[Latency] AVERAGE", "1400.0000"),
            ("[Latency] P50    ", "1900.0000"),
        ],
    )
    def test_numbers_that_contradict_each_other(self, label: str, value: str) -> None:
        lines = as_text(Run()).splitlines()
        (place,) = (i for i, line in enumerate(lines) if line.startswith(f"{label}:"))
        lines[place] = f"{label}: {value}"
        error = refused("\n".join(lines))
        assert error.failure == "no_metrics"
        assert "contradicts itself" in error.message

    def test_rows_that_are_cut(self) -> None:
        text = excerpt(Run())
        assert refused(text[: text.rindex(":") + 1]).failure == "truncated_output"
        lines = excerpt(Run(streaming=True)).splitlines()
        assert refused("\n".join(lines[:-1])).failure == "truncated_output"
        assert refused("Aborted!\n").failure == "no_metrics"

    def test_two_reports_in_one_file(self) -> None:
        error = refused(excerpt(Run()) + excerpt(Run(duration_ms=2500.0)))
        assert error.failure == "no_metrics"
        assert "2 reports" in error.message


@given(run=runs())
def test_both_generations_say_the_same(run: Run) -> None:
    first, second = read(as_text(run, 1)), read(as_text(run, 2))
    assert first.metrics == second.metrics
    assert {**second.facts, **first.facts} == second.facts
