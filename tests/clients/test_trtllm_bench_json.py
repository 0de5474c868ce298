"""trtllm-bench's JSON report: the source that the printed one must agree with."""

import copy
import json
from typing import Any

import pytest
from bench_reports import Run, as_json, as_text, runs
from hypothesis import given
from tables import each

from perfgate.clients import trtllm_bench_text
from perfgate.clients.report_lines import lines_of
from perfgate.clients.trtllm_bench_json import is_report, parse
from perfgate.core.errors import RunError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import METRICS

STREAMED = Run(streaming=True, mtp=True)


def read(report: dict[str, Any]) -> Measurement:
    return parse(report).measurement()


def changed(path: str, value: Any, run: Run = STREAMED) -> dict[str, Any]:
    """The report with one field changed, or removed if the value is `...`."""
    report = copy.deepcopy(as_json(run))
    *sections, key = path.split(".")
    place = report
    for section in sections:
        place = place[section]
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return report


def test_metrics_are_canonical_and_in_our_units() -> None:
    found = read(as_json(STREAMED)).metrics
    assert set(found) <= set(METRICS)
    assert found["duration_s"] == 2.0
    assert found["request_throughput"] == 50.0
    assert found["output_throughput"] == 6400.0
    assert found["output_throughput_per_gpu"] == 800.0
    assert found["ttft_mean_ms"] == 150.0
    assert found["ttft_p95_ms"] == pytest.approx(165.0)
    assert found["e2el_median_ms"] == pytest.approx(1485.0)
    assert found["acceptance_length"] == 2.5


def test_facts_are_what_the_report_shows() -> None:
    facts = read(as_json(STREAMED)).facts
    shown = {
        "client_version": "1.1.0rc5",
        "backend": "Pytorch",
        "kv_cache_dtype": "FP8",
        "quantization": "NVFP4",
        "tp": 8,
        "ep": 8,
        "gpus": 8,
        "max_batch_size": 384,
        "max_num_tokens": 1536,
        "kv_cache_fraction": 0.85,
        "requests_completed": 100,
        "isl": 128.0,
        "osl": 128.0,
        "gpu": "NVIDIA B200",
        "decoding_mode": "MTP",
        "streaming": True,
    }
    assert {name: facts[name] for name in shown} == shown
    json.dumps(facts, allow_nan=False)


def test_old_reports_have_no_machine() -> None:
    assert "gpu" not in read(changed("machine", None)).facts
    assert "gpu" not in read(changed("machine", ...)).facts


def test_unknown_keys_are_kept() -> None:
    report = changed("performance.goodness", 3)
    assert read(report).facts["unknown_labels"] == ["goodness"]


@each("field", ["request_throughput_req_s", "total_latency_ms"])
@each("value", [0, -1.0, None, "N/A", float("nan"), float("inf"), ...])
def test_a_metric_that_is_no_positive_number(field: str, value: object) -> None:
    with pytest.raises(RunError) as caught:
        read(changed(f"performance.{field}", value))
    assert caught.value.failure == "no_metrics"
    assert field in str(caught.value)


def test_total_token_throughput_may_be_missing() -> None:
    report = changed("performance.system_total_throughput_tok_s", ...)
    assert "total_token_throughput" not in read(report).metrics


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("request_info.num_requests", 50),
        ("request_info.avg_output_length", 28.0),
        ("request_info.avg_input_length", 1024.0),
        ("world_info.world_size", 16),
        ("performance.output_throughput_per_user_tok_s", 1e6),
    ],
)
def test_numbers_that_contradict_each_other(field: str, value: float) -> None:
    with pytest.raises(RunError, match="contradicts itself"):
        read(changed(field, value))


@pytest.mark.parametrize("section", ["performance", "request_info"])
def test_a_section_that_is_missing(section: str) -> None:
    report = changed(section, ...)
    assert not is_report(report)
    with pytest.raises(RunError, match=r"the report has no|num_requests"):
        read(report)


@given(runs())
def test_the_printed_report_says_the_same(run: Run) -> None:
    wanted = read(as_json(run))
    found = trtllm_bench_text.parse(lines_of(as_text(run))).measurement()
    assert set(found.metrics) == set(wanted.metrics)
    for name, value in wanted.metrics.items():
        assert found.metrics[name] == pytest.approx(value, rel=1e-4, abs=1e-4)
    shared = set(found.facts) & set(wanted.facts) - {"concurrency_mean", "output_speed_percentiles"}
    shared -= {name for name in shared if name.endswith("_ms")}
    assert {n: found.facts[n] for n in shared} == {n: wanted.facts[n] for n in shared}
