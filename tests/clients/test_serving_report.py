"""Results of benchmark_serving and vllm bench: JSON and table, healthy and not."""

import json
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.clients import serving_report, serving_text
from perfgate.clients.report_lines import lines_of
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import METRICS

DATA = Path(__file__).parents[1] / "data"
RESULT: dict[str, Any] = json.loads((DATA / "benchmark_serving" / "result.json").read_text())
TABLE = (DATA / "benchmark_serving" / "table.txt").read_text()


def from_json(**changes: Any) -> Measurement:
    fields = {key: value for key, value in {**RESULT, **changes}.items() if value is not ...}
    return serving_report.parse(fields).measurement("benchmark_serving")


def from_text(text: str) -> Measurement:
    return serving_text.parse(lines_of(text)).measurement("benchmark_serving")


def refused(text: str) -> RunError:
    with pytest.raises(RunError) as caught:
        from_text(text)
    return caught.value


def line(label: str, value: object) -> str:
    """The table with one line's value replaced."""
    lines = TABLE.splitlines()
    (place,) = (i for i, text in enumerate(lines) if text.startswith(f"{label}:"))
    lines[place] = f"{label + ':':<40} {value}"
    return "\n".join(lines) + "\n"


class TestJson:
    def test_metrics_are_canonical(self) -> None:
        found = from_json().metrics
        assert set(found) <= set(METRICS)
        assert found["duration_s"] == 17.66
        assert found["output_throughput_per_user"] == 58.31
        assert found["ttft_p99_ms"] == 511.9
        assert found["e2el_median_ms"] == 17561.3
        assert found["mean_request_latency_ms"] == found["e2el_mean_ms"]
        assert found["output_speed_per_user"] == pytest.approx(1000 / 16.77)
        assert found["acceptance_length"] == 1.82
        assert "request_goodput" not in found

    def test_facts_keep_the_text_inf(self) -> None:
        facts = from_json().facts
        assert facts["request_rate"] == "inf"
        assert (facts["requests_asked"], facts["requests_completed"]) == (16, 16)
        assert (facts["isl"], facts["osl"]) == (1024.0, 1024.0)
        json.dumps(facts, allow_nan=False)

    @pytest.mark.parametrize("key", ["request_goodput:", "request_goodput"])
    def test_goodput_with_and_without_the_stray_colon(self, key: str) -> None:
        assert from_json(**{key: 0.5}).metrics["request_goodput"] == 0.5

    def test_the_script_that_both_descend_from(self) -> None:
        fields = json.loads((DATA / "vllm_bench" / "old_script.json").read_text())
        found = serving_report.parse(fields).measurement("vllm-bench")
        assert found.metrics["request_throughput"] == 8.325406649602808
        assert found.facts["unknown_labels"] == ["deployment", "gpu"]
        assert "e2el_mean_ms" not in found.metrics

    def test_a_bare_infinity_is_no_metric(self) -> None:
        with pytest.raises(RunError, match="a metric is inf"):
            from_json(output_throughput=float("inf"))

    @pytest.mark.parametrize("changes", [{"completed": 12}, {"failed": 3}, {"completed": 0}])
    def test_requests_that_failed(self, changes: dict[str, int]) -> None:
        with pytest.raises(RunError) as caught:
            from_json(**changes)
        assert caught.value.failure == "incomplete"

    @pytest.mark.parametrize("value", [0.0, -1.0, None, "N/A", float("nan")])
    def test_a_metric_that_is_no_positive_number(self, value: object) -> None:
        with pytest.raises(RunError) as caught:
            from_json(mean_tpot_ms=value)
        assert caught.value.failure == "no_metrics"
        assert caught.value.evidence == (f'"mean_tpot_ms": {json.dumps(value)}',)

    @pytest.mark.parametrize("key", ["duration", "request_throughput", "total_token_throughput"])
    def test_a_metric_that_is_missing(self, key: str) -> None:
        with pytest.raises(RunError) as caught:
            from_json(**{key: ...})
        assert caught.value.failure == "no_metrics"

    @pytest.mark.parametrize(
        "changes",
        [
            {"request_throughput": 2.0},
            {"output_throughput": 500.0},
            {"total_token_throughput": 1000.0},
            {"duration": 30.0},
            {"mean_ttft_ms": 20000.0, "median_ttft_ms": 20000.0, "p99_ttft_ms": 20000.0},
        ],
    )
    def test_numbers_that_contradict_each_other(self, changes: dict[str, float]) -> None:
        with pytest.raises(RunError, match="contradicts itself"):
            from_json(**changes)

    def test_not_streamed(self) -> None:
        # The program puts -1 s for the TTFT that it does not know.
        unknown = {f"{name}_ttft_ms": -1000.0 for name in ("mean", "median", "p99")}
        itl = {f"{name}_itl_ms": 0.0 for name in ("mean", "median", "p99")}
        found = from_json(**unknown, **itl)
        assert not [name for name in found.metrics if name.startswith(("ttft", "tpot", "itl"))]
        assert found.facts["streaming"] is False


class TestTable:
    def test_says_the_same_as_json(self) -> None:
        found, wanted = from_text(TABLE), from_json()
        assert set(found.metrics) == set(wanted.metrics)
        for name, value in wanted.metrics.items():
            assert found.metrics[name] == pytest.approx(value, abs=0.006)
        assert "unknown_labels" not in found.facts

    def test_the_documented_tensorrt_llm_result(self) -> None:
        text = (DATA / "vllm_bench" / "trtllm_sharegpt.txt").read_text()
        found = from_text(text)
        assert found.metrics["total_token_throughput"] == 3385.88
        assert found.metrics["tpot_mean_ms"] == 221.31
        assert found.facts["peak_output_throughput"] == 7636
        assert found.facts["requests_completed"] == 1000

    def test_peaks_are_no_concurrency(self) -> None:
        """Nine "at once" where the client allows four: all that touch a second count in it."""
        facts = from_text((DATA / "vllm_bench" / "vllm_sharegpt_capped.txt").read_text()).facts
        assert (facts["max_concurrency"], facts["peak_concurrent_requests"]) == (4, 9)

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

    def test_the_template_in_the_quick_start_recipe_is_no_result(self) -> None:
        text = (DATA / "benchmark_serving" / "placeholders.txt").read_text()
        assert refused(text).failure == "no_metrics"

    def test_failed_requests_in_the_banner(self) -> None:
        banner = "=" * 23 + "!FAILED REQUESTS!" + "=" * 23
        text = TABLE.replace(
            "User throughput", f"{banner}\nTotal failed requests: 2\nUser throughput"
        )
        assert refused(text).evidence == (banner,)

    def test_fewer_requests_than_the_arguments_ask_for(self) -> None:
        lines = line("Successful requests", 12).splitlines()
        kept = [text for text in lines if not text.startswith(("Total requests", "Failed"))]
        error = refused("\n".join(kept) + "\n")
        assert error.failure == "incomplete"
        assert "12 of 16" in error.message

    def test_not_streamed_by_its_arguments(self) -> None:
        text = TABLE.replace("non_streaming=False", "non_streaming=True")
        found = from_text(text)
        assert "ttft_mean_ms" not in found.metrics
        assert found.metrics["e2el_mean_ms"] == 17558.21

    def test_two_results_in_one_file(self) -> None:
        assert "2 results" in refused(TABLE + TABLE).message


class TestZeros:
    """Tokens that reach the client together have no time between them."""

    @pytest.mark.parametrize("label", ["Median ITL (ms)", "P99 ITL (ms)"])
    def test_a_percentile_of_itl_may_be_zero(self, label: str) -> None:
        short = label.split()[0].lower()
        text = line(label, "0.00")
        if short == "p99":
            text = text.replace(next(x for x in text.splitlines() if "Median ITL" in x), "")
        assert from_text(text).metrics[f"itl_{short}_ms"] == 0

    @pytest.mark.parametrize("value", [0, 0.0])
    def test_a_median_of_itl_in_json_may_be_zero(self, value: float) -> None:
        assert from_json(median_itl_ms=value).metrics["itl_median_ms"] == 0
        with pytest.raises(RunError, match=r"a metric is -0\.01"):
            from_json(median_itl_ms=-0.01)

    @each(
        "label",
        ["Mean ITL (ms)", "Median TPOT (ms)", "Mean TPOT (ms)", "Median TTFT (ms)"]
        + ["Median E2EL (ms)", "Request throughput (req/s)", "Output token throughput (tok/s)"],
    )
    def test_nothing_else_is(self, label: str) -> None:
        assert refused(line(label, "0.00")).message == "a metric is 0"

    def test_the_median_of_itl_as_bursts_leave_it(self) -> None:
        """As of vLLM with a mean of 76.76 ms, a median of 0.00 and a 99th percentile of 1370.84."""
        found = from_text((DATA / "vllm_bench" / "vllm_bursts.txt").read_text()).metrics
        assert (found["itl_mean_ms"], found["itl_median_ms"], found["itl_p99_ms"]) == (
            76.31,
            0.0,
            1370.62,
        )

    def test_one_token_answers_have_no_time_between_tokens(self) -> None:
        """The programs print 0.00 for what does not exist."""
        found = from_text((DATA / "vllm_bench" / "vllm_one_token.txt").read_text())
        assert {name for name in found.metrics if name.startswith(("itl", "tpot"))} == set()
        assert found.metrics["ttft_mean_ms"] == 25793.5
        assert found.facts["osl"] == 1
        zeros = {
            f"{one}_{short}_ms": 0.0
            for one in ("mean", "median", "p99")
            for short in ("tpot", "itl")
        }
        completed = RESULT["completed"]
        rates = {"output_throughput": RESULT["request_throughput"]}
        total = (RESULT["total_input_tokens"] + completed) / RESULT["duration"]
        found = from_json(
            total_output_tokens=completed,
            total_token_throughput=total,
            user_throughput=...,
            **rates,
            **zeros,
        )
        assert "itl_mean_ms" not in found.metrics
