"""Parsing: what a file of unknown origin is, and the first line that tells what is wrong."""

import json
from pathlib import Path

import pytest
from bench_reports import Run, as_json, as_text
from tables import each

from perfgate.clients.aiperf import RESULT, AIPerf
from perfgate.core.errors import InputError
from perfgate.core.failures import FAILURES
from perfgate.core.measurement import Json
from perfgate.evaluators.result_formats import CLIENTS, parse
from perfgate.scenarios.scenario import LoadPoint, Workload

DATA = Path(__file__).parents[1] / "data"
TABLE = (DATA / "benchmark_serving" / "table.txt").read_text()
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def plain(content: str, client: str | None = None) -> dict[str, Json]:
    return parse(content, client).plain()


def error(content: str, client: str | None = None) -> dict[str, Json]:
    found = plain(content, client)
    assert found["outcome"] == "error"
    assert set(found) == {"outcome", "class", "evidence", "hint", "message"}
    assert found["class"] in FAILURES
    assert found["hint"]
    return found


RECORDED = json.loads((DATA / "values.json").read_text(encoding="utf-8"))
NAMED = {
    name: said["facts"]["client"] for name, said in RECORDED.items() if said["outcome"] == "success"
}


def test_every_program_that_a_scenario_can_call_has_a_recorded_output() -> None:
    assert set(NAMED.values()) == set(CLIENTS) - {"vllm-benchmark-serving"}  # read as its successor


@each("file", NAMED)
def test_the_program_may_be_named(file: str) -> None:
    content, client = (DATA / file).read_text(encoding="utf-8"), NAMED[file]
    found = plain(content, client)
    assert found == plain(content)
    json.dumps(found, allow_nan=False)
    other = "lm_eval" if client != "lm_eval" else "trtllm-bench"
    error(content, other)


def test_json_of_trtllm_bench() -> None:
    found = parse(json.dumps(as_json(Run(streaming=True)), indent=2))
    assert found.measurement.metrics["ttft_mean_ms"] == 150.0


class TestAIPerf:
    RECORDED = DATA / "aiperf" / "streamed.json"

    def test_reads_what_a_run_of_the_suite_reads(self, tmp_path: Path) -> None:
        (tmp_path / RESULT).write_bytes(self.RECORDED.read_bytes())
        point = LoadPoint(concurrency=2, requests=12, warmup_requests=2, seed=1)
        workload = Workload("aiperf", "synthetic", 64, 32, (2,))
        found = parse(self.RECORDED.read_text()).measurement
        assert found.metrics == AIPerf().parse(workload, point, tmp_path).metrics
        asked = {"input_config": {"loadgen": {"concurrency": 2}}}
        told = json.dumps({**json.loads(self.RECORDED.read_text()), **asked})
        found = parse(told).measurement
        assert found.facts["concurrency"] == 2, "as asked, where a release tells it"


def test_a_table_of_lm_eval() -> None:
    head = "|Tasks|Version|Filter|n-shot|Metric| |Value| |Stderr|\n"
    row = "|gsm8k|3|strict-match|5|exact_match|↑|0.9500|±|0.0060|\n"
    assert plain(head + row)["metrics"] == {"accuracy:gsm8k:exact_match:strict-match": 0.95}


def test_a_program_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="not a program whose results") as caught:
        parse("", "genai-perf")
    assert all(client in str(caught.value) for client in CLIENTS)


def _line_of(part: str, text: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), start=1) if part in line)


class TestEvidence:
    """Of damaged forms of recorded outputs: tests/data/values.json."""

    def test_in_json_is_the_field(self) -> None:
        report = as_json(Run())
        report["performance"]["total_latency_ms"] = 0
        text = json.dumps(report, indent=2)
        number = _line_of("total_latency_ms", text)
        assert error(text)["evidence"] == [number, '"total_latency_ms": 0']
        assert error(json.dumps(report))["evidence"] == [1, '"total_latency_ms": 0']

    def test_of_a_failed_request_is_where_it_is_counted(self) -> None:
        text = TABLE.replace("Failed requests:                         0", "Failed requests:  3")
        number = _line_of("ed requests:  3", text)
        found = error(text)
        assert found["class"] == "incomplete"
        assert found["evidence"] == [number, "Failed requests:  3"]

    @each("content", ["", "\n \n"])
    def test_of_an_empty_file_is_its_first_line(self, content: str) -> None:
        assert error(content)["evidence"] == [1, ""]


LOADING = "[TRT-LLM] [I] Loading\n"
WELL = "[TRT-LLM] [I] free memory 1.63 of total memory 5.87"
WRONG = "[TRT-LLM] [E] Error in event loop: list index out of range"


class TestLogsOfFailedRuns:
    @each(
        ("log", "failure", "evidence"),
        [
            # The first cause tells, also of a report that was cut.
            (f"{LOADING}{OOM}\nMPI_ABORT was invoked on rank 3\n", "oom", [2, OOM]),
            (f"Mean TTFT (ms):   12.0\nMean ITL (ms):   1.0\n{OOM}\n", "oom", [3, OOM]),
            # It ends well without a report, or with a line that reads like one of its rows.
            (f"{LOADING}{WELL}\n", "no_metrics", [2, WELL]),
            (f"Total Latency (ms): 12.5\n{WELL}\n", "no_metrics", [2, WELL]),
            (f"{LOADING}{WRONG}\nbye\n", "unknown", [2, WRONG]),
        ],
    )
    def test_what_tells(self, log: str, failure: str, evidence: list[object]) -> None:
        for client in (None, "trtllm-bench"):
            found = error(log, client)
            assert (found["class"], found["evidence"]) == (failure, evidence)

    def test_a_report_that_was_cut_by_a_cause(self) -> None:
        cut = "\n".join(as_text(Run()).splitlines()[:30])
        assert error(f"{cut}\n{OOM}\n")["class"] == "oom"

    def test_a_whole_report_outweighs_scary_words(self) -> None:
        scary = "[I] Estimated max memory in KV cache : 70.86 GiB\n# no OutOfMemory was seen\n"
        assert plain(scary + as_text(Run()) + scary)["outcome"] == "success"


class TestJson:
    def test_of_nobody(self) -> None:
        found = error('{"hello": 1}')
        assert found["class"] == "no_metrics"
        assert "hello" in str(found["message"])
