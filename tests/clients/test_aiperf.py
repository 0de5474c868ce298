"""AIPerf: its command line, and what its exported summary must show to count as a measurement.

The values of the recorded summaries are in tests/data/values.json.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tables import each

from perfgate.clients.aiperf import RESULT, AIPerf
from perfgate.clients.base import Target
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.engines.base import Endpoint
from perfgate.scenarios.scenario import LoadPoint, Workload

RECORDED = Path(__file__).parents[1] / "data" / "aiperf"
ENDPOINT = Endpoint("127.0.0.1", 8123, "smollm2")
TARGET = Target(ENDPOINT, "/models/tokenizer", folder=Path("/runs/c2"))
WORKLOAD = replace(SCENARIO.workload, max_request_rate=100.0)
POINT = LoadPoint(concurrency=2, requests=12, warmup_requests=2, seed=1)
SHORT = LoadPoint(concurrency=2, requests=4, warmup_requests=1, seed=1)

Change = Callable[[dict[str, Any]], object]


def recorded(name: str) -> dict[str, Any]:
    return json.loads((RECORDED / f"{name}.json").read_text())


def parse(
    folder: Path, summary: object, workload: Workload = WORKLOAD, point: LoadPoint = POINT
) -> Measurement:
    (folder / RESULT).write_text(json.dumps(summary))
    return AIPerf().parse(workload, point, folder)


@pytest.fixture(autouse=True)
def _program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_PROGRAM_AIPERF", "true")


def argv(workload: Workload, point: LoadPoint = POINT) -> list[str]:
    return list(AIPerf().command(TARGET, workload, point).argv)


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


class TestCommand:
    """On paper: tests/data/calls.json."""

    def test_asks_for_what_the_workload_and_the_point_say(self) -> None:
        words = " ".join(argv(WORKLOAD))
        for asked in (
            "--model smollm2 --url http://127.0.0.1:8123 --endpoint-type completions --streaming ",
            "--tokenizer /models/tokenizer --isl 64 --isl-stddev 0 --osl 32 --osl-stddev 0 ",
            "--random-seed 1 --concurrency 2 --request-count 12 --warmup-request-count 2 ",
            "--request-rate 100 ",
            "ignore_eos:true",
            "--output-artifact-dir /runs/c2",
        ):
            assert asked in words

    def test_leaves_out_what_is_not_asked(self) -> None:
        plain = replace(WORKLOAD, streaming=False, ignore_eos=False, max_request_rate=None)
        words = argv(plain, replace(POINT, warmup_requests=0))
        assert not {"--streaming", "ignore_eos:true", "--request-rate"} & set(words)
        assert "--warmup-request-count" not in words
        assert option(argv(replace(WORKLOAD, api="chat")), "--endpoint-type") == "chat"
        assert "--workers-max" in argv(WORKLOAD)
        assert "--workers-max" not in argv(WORKLOAD, replace(POINT, concurrency=1024))
        env = AIPerf().command(TARGET, WORKLOAD, POINT).env
        assert env["HF_HUB_OFFLINE"] == env["TRANSFORMERS_OFFLINE"] == "", "not the caller's"

    @pytest.mark.parametrize("change", [{"dataset": "sharegpt"}, {"isl": None}, {"osl": None}])
    def test_refuses_prompts_it_does_not_make(self, change: dict[str, Any]) -> None:
        with pytest.raises(InputError, match="supports only synthetic prompts"):
            argv(replace(WORKLOAD, **change))


class TestMetrics:
    def test_chunks_that_arrive_together_leave_a_median_of_zero(self, tmp_path: Path) -> None:
        summary = recorded("streamed")
        summary["inter_chunk_latency"]["p50"] = 0.0
        assert parse(tmp_path, summary).metrics["itl_median_ms"] == 0
        summary["inter_chunk_latency"]["avg"] = 0.0
        with pytest.raises(RunError, match="inter_chunk_latency has avg 0"):
            parse(tmp_path, summary)

    def test_without_streaming_there_are_no_token_times(self, tmp_path: Path) -> None:
        workload = replace(WORKLOAD, streaming=False, osl=8)
        found = parse(tmp_path, recorded("not_streamed"), workload, SHORT).metrics
        assert not [name for name in found if name.startswith(("ttft", "tpot", "itl"))]
        assert "output_speed_per_user" not in found
        assert found["output_throughput"] > 0

    def test_the_chat_template_may_add_to_the_prompt(self, tmp_path: Path) -> None:
        summary = recorded("chat")
        facts = parse(tmp_path, summary, replace(WORKLOAD, api="chat", osl=8), SHORT).facts
        assert facts["isl"] == summary["input_sequence_length"]["avg"] > 64
        with pytest.raises(RunError, match="ISL was"):
            parse(tmp_path, summary, replace(WORKLOAD, osl=8), SHORT)

    @pytest.mark.parametrize(("unit", "factor"), [("sec", 1e3), ("us", 1e-3), ("ns", 1e-6)])
    def test_times_in_other_units_become_ms(self, tmp_path: Path, unit: str, factor: float) -> None:
        summary = recorded("streamed")
        before = parse(tmp_path, summary).metrics["ttft_mean_ms"]
        summary["time_to_first_token"]["unit"] = unit
        assert parse(tmp_path, summary).metrics["ttft_mean_ms"] == pytest.approx(before * factor)

    def test_facts_tell_what_was_really_done(self, tmp_path: Path) -> None:
        silent = recorded("streamed")
        del silent["total_usage_prompt_cache_read_tokens"]
        assert parse(tmp_path, silent).facts["prompt_tokens_cached"] is None
        assert parse(tmp_path, recorded("streamed")).facts == {
            "client": "aiperf",
            "client_version": "0.13.0",
            "requests_asked": 12,
            "requests_completed": 12,
            "isl": 64.0,
            "osl": 32.0,
            "concurrency": 2,
            "seed": 1,
            "prompt_tokens_cached": 0,
        }


def put(tag: str, statistic: str, value: object) -> Change:
    return lambda summary: summary[tag].update({statistic: value})


def drop(tag: str) -> Change:
    return lambda summary: summary.pop(tag)


class TestRefuses:
    @each(
        ("failure", "change"),
        [
            ("no_metrics", drop("time_to_first_token")),
            ("no_metrics", drop("inter_chunk_latency")),
            ("no_metrics", drop("output_token_throughput")),
            ("no_metrics", drop("output_sequence_length")),
            ("no_metrics", lambda summary: summary["request_latency"].pop("p99")),
            ("no_metrics", put("request_latency", "p99", None)),
            ("no_metrics", put("request_latency", "p99", "3.5")),
            ("no_metrics", put("request_latency", "unit", "fortnights")),
            ("no_metrics", put("output_token_throughput", "unit", "requests/sec")),
            ("no_metrics", lambda summary: summary.update(schema_version="2.0")),
            ("no_metrics", drop("schema_version")),
            ("incomplete", put("time_to_first_token", "avg", 0.0)),
            ("incomplete", put("inter_token_latency", "p50", float("nan"))),
            ("incomplete", put("request_throughput", "avg", float("inf"))),
            ("incomplete", put("request_latency", "avg", -3.0)),
            ("incomplete", put("request_count", "avg", 11.0)),
            ("incomplete", put("request_count", "avg", 13.0)),
            ("incomplete", drop("request_count")),
            ("incomplete", lambda summary: summary.update(is_complete=False)),
            ("incomplete", lambda summary: summary.update(was_cancelled=True)),
            ("incomplete", drop("is_complete")),
            ("incomplete", put("output_sequence_length", "avg", 31.8)),
            ("incomplete", put("output_sequence_length", "min", 16.0)),
            ("incomplete", put("output_sequence_length", "max", 48.0)),
            ("incomplete", put("input_sequence_length", "avg", 60.0)),
            ("prefix_cache_hit", put("total_usage_prompt_cache_read_tokens", "avg", 100.0)),
        ],
    )
    def test_a_summary_that_is_not_what_was_asked(self, tmp_path, failure, change) -> None:
        summary = recorded("streamed")
        change(summary)
        assert refused(parse, tmp_path, summary, error=RunError).failure == failure

    def test_a_run_whose_server_was_killed(self, tmp_path: Path) -> None:
        """AIPerf ends with status 0 then, and its throughput looks healthy."""
        load, told = replace(WORKLOAD, osl=64), "6 requests failed; 6 of 12 requests"
        refused(parse, tmp_path, recorded("server_killed"), load, error=RunError, match=told)

    def test_answers_that_end_early_unless_they_may(self, tmp_path: Path) -> None:
        summary = recorded("streamed")
        summary["output_sequence_length"].update(avg=20.0, min=3.0)
        with pytest.raises(RunError, match="OSL was 20 tokens, not the 32 requested"):
            parse(tmp_path, summary)
        assert parse(tmp_path, summary, replace(WORKLOAD, ignore_eos=False)).facts["osl"] == 20.0

    def test_no_summary_and_shows_the_errors_of_the_log(self, tmp_path: Path) -> None:
        (tmp_path / "logs").mkdir()
        log = (RECORDED / "dead_server.log").read_text()
        (tmp_path / "logs" / "aiperf.log").write_text(log)
        error = refused(AIPerf().parse, WORKLOAD, POINT, tmp_path, error=RunError)
        assert error.failure == "no_metrics"
        assert "All 4 inference request(s) failed" in error.evidence[-1]

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe{}", b"[]", b"null"])
    def test_what_is_no_summary(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / RESULT).write_bytes(content)
        refused(AIPerf().parse, WORKLOAD, POINT, tmp_path, error=RunError)


WHOLE = (RECORDED / "streamed.json").read_bytes().rstrip()


@given(length=st.integers(0, len(WHOLE) - 1))
def test_a_summary_cut_anywhere_is_called_cut(tmp_path_factory, length) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / RESULT).write_bytes(WHOLE[:length])
    error = refused(AIPerf().parse, WORKLOAD, POINT, folder, error=RunError)
    assert error.failure == "truncated_output"
