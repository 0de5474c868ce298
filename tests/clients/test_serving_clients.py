"""Serving clients: their command lines, their release, and what they left, whole or not."""

import json
import sys
from dataclasses import replace
from importlib.metadata import version as metadata_version
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from building import SCENARIO
from refusals import refused
from tables import each

from perfgate.clients.base import Client, Target, package_version
from perfgate.clients.serving_clients import (
    BenchmarkServing,
    SglangBench,
    VllmBench,
    VllmBenchmarkServing,
)
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import SGLANG_BENCH, VLLM_SCRIPT
from perfgate.engines.base import Endpoint
from perfgate.evaluators.result_formats import parse_file
from perfgate.scenarios.scenario import LoadPoint, Workload

DATA = Path(__file__).parents[1] / "data"
RESULT: dict[str, Any] = json.loads((DATA / "benchmark_serving" / "result.json").read_text())
RECORDED: dict[str, Any] = json.loads((DATA / "values.json").read_text(encoding="utf-8"))
MODEL = "deepseek-ai/DeepSeek-R1-0528"
TARGET = Target(Endpoint("127.0.0.1", 8000, MODEL), MODEL, Locations(on_paper=True))
WORKLOAD = replace(SCENARIO.workload, client="benchmark_serving", isl=1024, osl=1024)
POINT = LoadPoint(concurrency=32, requests=160, warmup_requests=0, seed=32)
ROUND = replace(POINT, requests=16)
RESULT_NAME = BenchmarkServing.result_name


def argv(
    client: Client, workload: Workload = WORKLOAD, point: LoadPoint = POINT, target: Target = TARGET
) -> str:
    return " ".join(client.command(target, workload, point).argv)


def parse(folder: Path, workload: Workload = WORKLOAD, **changes: Any) -> Measurement:
    (folder / RESULT_NAME.format(ROUND.concurrency)).write_text(json.dumps({**RESULT, **changes}))
    return BenchmarkServing().parse(workload, ROUND, folder)


CHAT = {"api": "chat"}
WHOLE = {"streaming": False, "ignore_eos": False}
SHAREGPT = {"dataset": "sharegpt", "isl": None, "osl": None}


class TestBenchmarkServing:
    """As the quick start recipe calls it: tests/documented_commands.py."""

    @each(
        ("load", "capped", "present", "absent"),
        [
            (CHAT, True, "openai-chat --endpoint /v1/chat/completions", "--tokenize-on-client"),
            (WHOLE, True, "--non-streaming --percentile-metrics e2el ", "--ignore-eos"),
            ({}, False, "--num-prompts 160 ", "--max-concurrency"),
            ({"max_request_rate": 2.5}, True, "--request-rate 2.5", "--non-streaming"),
            (SHAREGPT, True, "sharegpt --dataset-path ShareGPT_V3_unfiltered_cleaned", "random"),
        ],
    )
    def test_other_loads(self, load, capped, present, absent) -> None:
        point = replace(POINT, capped=capped)
        line = argv(BenchmarkServing(), replace(WORKLOAD, **load), point)
        assert present in line
        assert absent not in line

    def test_a_tokenizer_of_another_name_than_the_model(self) -> None:
        target = replace(TARGET, tokenizer="/models/DeepSeek-R1-0528")
        assert "--tokenizer /models/DeepSeek-R1-0528" in argv(BenchmarkServing(), target=target)

    def test_refuses_what_it_does_not_make(self) -> None:
        with pytest.raises(InputError, match="does not support these prompts"):
            argv(BenchmarkServing(), replace(WORKLOAD, dataset="real"))
        with pytest.raises(InputError, match="no warm-up requests"):
            argv(BenchmarkServing(), point=replace(POINT, warmup_requests=32))

    def test_is_absent_where_the_engine_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        BenchmarkServing().require(Locations(on_paper=True))
        monkeypatch.setenv("PERFGATE_PROGRAM_BENCHMARK_SERVING", f"{sys.executable} -m any.thing")
        with pytest.raises(MissingProgram, match="has no package tensorrt_llm"):
            BenchmarkServing().require(Locations())


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


class TestRelease:
    """A client that does not tell its release is asked for by the interpreter that runs it."""

    INSTALLED = metadata_version("msgspec")

    def test_the_program_tells_where_its_python_cannot(self, tmp_path, monkeypatch) -> None:
        text = "#!/bin/sh\necho INFO importing\necho 0.11.0\n"
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", program(tmp_path / "vllm", text))
        assert VllmBench().version(Locations()) == "0.11.0"
        for body in ("exit 1", "true"):
            program(tmp_path / "vllm", f"#!/bin/sh\n{body}\n")
            told = "does not report its version"
            refused(VllmBench().version, Locations(), error=MissingProgram, match=told)

    def test_its_python_tells_without_importing_it(self, tmp_path, monkeypatch) -> None:
        folder = tmp_path / "vllm-0.32.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
        text = f"#!{sys.executable}\nraise SystemExit('asked')\n"
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", program(tmp_path / "vllm", text))
        assert VllmBench().version(Locations()) == "0.32.0"

    def test_of_the_python_that_runs_a_module(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(SGLANG_BENCH.variable, f"{sys.executable} -m sglang.bench_serving")
        assert package_version(SGLANG_BENCH, "msgspec", Locations()) == self.INSTALLED
        lacking = refused(SglangBench().version, Locations(), error=MissingProgram)
        assert "has no package sglang" in str(lacking)
        assert "followed by -m sglang.bench_serving" in lacking.hint

    @each(
        ("first", "found"),
        [(f"#!{sys.executable}", INSTALLED), ("#!/bin/sh", "0.8.5"), ("#!/x", None)],
    )
    def test_of_the_python_that_a_script_names_or_that_is_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, found: str | None
    ) -> None:
        script = program(tmp_path / "benchmark_serving.py", f"{first}\n")
        monkeypatch.setenv(VLLM_SCRIPT.variable, script)
        if found is None:
            told = "neither a Python nor a script of one"
            version = VllmBenchmarkServing().version
            refused(version, Locations(), error=MissingProgram, match=told)
            return
        program(tmp_path / "python", "#!/bin/sh\necho 0.8.5\n")
        assert package_version(VLLM_SCRIPT, "msgspec", Locations()) == found


class TestWhatIsLeft:
    def test_the_json_result(self, tmp_path: Path) -> None:
        found = parse(tmp_path)
        assert found.metrics["ttft_mean_ms"] == 402.5
        asked = {"client": "benchmark_serving", "requests_asked": 16, "concurrency": 32, "seed": 32}
        assert {name: found.facts[name] for name in asked} == asked

    def test_the_table_is_the_fallback(self, tmp_path: Path) -> None:
        (tmp_path / "client.out").write_text((DATA / "benchmark_serving/table.txt").read_text())
        found = BenchmarkServing().parse(WORKLOAD, ROUND, tmp_path)
        assert found.metrics["ttft_mean_ms"] == 402.5

    def test_nothing_but_a_log(self, tmp_path: Path) -> None:
        (tmp_path / "client.err").write_text("ValueError: Initial test run failed\n")
        with pytest.raises(RunError, match="left no report"):
            BenchmarkServing().parse(WORKLOAD, ROUND, tmp_path)

    @each(
        ("changes", "missing", "failure", "told"),
        [
            # Of the file alone, or of what was asked.
            ({}, "mean_ttft_ms", "no_metrics", "the report has no mean TTFT"),
            ({}, "mean_itl_ms", "no_metrics", "the report has no mean ITL"),
            ({}, "mean_e2el_ms", "no_metrics", "the report has no mean E2EL"),
            ({"isl": 900}, "", "incomplete", "not the 900 requested"),
            ({"osl": 900}, "", "incomplete", "not the 900 requested"),
        ],
    )
    def test_what_is_no_result_of_the_load(self, tmp_path, changes, missing, failure, told) -> None:
        result = {name: value for name, value in RESULT.items() if name != missing}
        (tmp_path / RESULT_NAME.format(ROUND.concurrency)).write_text(json.dumps(result))
        read, load = BenchmarkServing().parse, replace(WORKLOAD, **changes)
        error = refused(read, load, ROUND, tmp_path, error=RunError, match=told)
        assert error.failure == failure
        (tmp_path / RESULT_NAME.format(POINT.concurrency)).write_text(json.dumps(RESULT))
        error = refused(read, WORKLOAD, POINT, tmp_path, error=RunError, match="16 of 160 requests")
        assert error.failure == "incomplete"

    def test_what_may_be_otherwise(self, tmp_path: Path) -> None:
        assert parse(tmp_path, replace(WORKLOAD, isl=900, api="chat")), "its template adds to it"
        assert parse(tmp_path, replace(WORKLOAD, dataset="sharegpt", isl=None, osl=None))
        found = parse(tmp_path, replace(WORKLOAD, streaming=False), mean_ttft_ms=-1000.0)
        assert not [name for name in found.metrics if name.startswith(("ttft", "tpot", "itl"))]


# Runs of the real load clients, as they left them: whole ones, and those that only look whole.
# Recorded: `vllm bench serve` 0.32.0 and ``sglang.bench_serving`` 0.4.6, 0.5.3 and 0.5.23, which
# perfgate's own command lines started, at real servers and at one that died in mid-run.
VLLM = DATA / "vllm_bench" / "v0.32.0"
SGLANG = DATA / "sglang_bench" / "v0.5.23"
OLD = DATA / "sglang_bench" / "v0.4.6"
SMALL = Workload("any", "synthetic", 16, 8, (4,), requests=20)
TOO_LONG = replace(SMALL, isl=3000, osl=32, requests=4)


def point(requests: int) -> LoadPoint:
    return LoadPoint(4, requests, 0, seed=7)


def left(folder: Path, result: Path | None = None, log: Path | None = None) -> Path:
    """The folder of a client that left these files."""
    if result is not None:
        copyfile(result, folder / f"concurrency_4{result.suffix}")
    if log is not None:
        copyfile(log, folder / "client.out")
    return folder


def refused_run(client: Client, workload: Workload, requests: int, folder: Path) -> RunError:
    parse = client.parse
    return refused(parse, workload, point(requests), folder, error=RunError)


class TestWhole:
    """Of each, the text says what the result file says, as far as it is printed."""

    @each(
        ("file", "text"),
        [
            ("benchmark_serving/result.json", "benchmark_serving/table.txt"),
            ("vllm_bench/v0.32.0/healthy.json", "vllm_bench/v0.32.0/healthy.out"),
            *(
                (f"sglang_bench/{one}/healthy.jsonl", f"sglang_bench/{one}/healthy.out")
                for one in ("v0.4.6", "v0.5.3", "v0.5.23")
            ),
        ],
    )
    def test_text_and_file_agree(self, file: str, text: str) -> None:
        of_file, of_text = RECORDED[file], RECORDED[text]
        shown = of_text["metrics"].keys() - {"output_speed_per_user"}
        for name in shown:
            other = of_file["metrics"][name]
            assert of_text["metrics"][name] == pytest.approx(other, abs=0.0051), name
        for name in of_file["facts"].keys() & of_text["facts"].keys() - {"mean_concurrency"}:
            assert of_file["facts"][name] == of_text["facts"][name], name
        assert "unknown_labels" not in {**of_file["facts"], **of_text["facts"]}

    def test_the_server_s_own_settings_are_taken_out_of_the_run_folder(self, tmp_path) -> None:
        """SGLang puts the server's whole configuration into its result, keys and all."""
        workload, path = replace(SMALL, isl=64, osl=16), tmp_path / "concurrency_4.jsonl"
        fields = json.loads((SGLANG / "own_server.jsonl").read_text())
        fields["server_info"]["api_key"] = "made-up"  # pragma: allowlist secret
        path.write_text(json.dumps(fields) + "\n")
        found = SglangBench().parse(workload, point(4), tmp_path)
        assert not [name for name in found.facts if "server" in name or "key" in name]
        assert "api_key" not in path.read_text()
        assert json.loads(path.read_text())["completed"] == 4
        assert SglangBench().parse(workload, point(4), tmp_path) == found

    def test_speculative_decoding(self, tmp_path: Path) -> None:
        fields = {**json.loads((SGLANG / "healthy.jsonl").read_text()), "accept_length": 1.82}
        (tmp_path / "concurrency_4.jsonl").write_text(json.dumps(fields))
        found = SglangBench().parse(replace(SMALL, isl=64, osl=16), point(8), tmp_path)
        assert found.metrics["acceptance_length"] == 1.82

    def test_a_special_token_that_the_tokenizer_adds(self, tmp_path: Path) -> None:
        folder = left(tmp_path, VLLM / "healthy.json")
        assert VllmBench().parse(replace(SMALL, isl=126, osl=32), point(20), folder)
        error = refused_run(VllmBench(), replace(SMALL, isl=125, osl=32), 20, folder)
        assert "not the 125 requested" in error.message


NONE = "none of 4 requests was completed, though vllm-bench ended with status 0"
SOME = "8 of 20 requests were completed, though sglang-bench ended with status 0"


@each(
    ("client", "load", "files", "message", "shown", "hint"),
    [
        # Exit status 0 and zeros, or numbers that look healthy; SGLang counts no failures at all.
        (
            *(VllmBench(), TOO_LONG, (VLLM / "all_failed.json", VLLM / "all_failed.out"), NONE),
            *(["Error 0: Bad Request"], "a prompt is longer than the server takes"),
        ),
        (
            *(VllmBench(), SMALL, (VLLM / "server_died.json", VLLM / "server_died.out")),
            *("15 requests failed, 5 were completed", ["Server disconnected"], "server's log"),
        ),
        (SglangBench(), SMALL, (OLD / "server_died.jsonl",), SOME, [], "server's log"),
    ],
)
def test_failed_requests_are_no_run(tmp_path, client, load, files, message, shown, hint) -> None:
    error = refused_run(client, load, load.requests, left(tmp_path, *files))
    assert error.failure == "incomplete"
    assert message in error.message
    assert all(any(one in line for line in error.evidence) for one in shown)
    assert hint in error.hint


class TestSeveralRuns:
    """SGLang adds a line to its file for each run."""

    def twice(self, folder: Path) -> Path:
        path = folder / "concurrency_4.jsonl"
        path.write_text(2 * (SGLANG / "healthy.jsonl").read_text())
        return path

    def test_nobody_can_tell_which_is_meant(self, tmp_path: Path) -> None:
        self.twice(tmp_path)
        error = refused_run(SglangBench(), replace(SMALL, isl=64, osl=16), 8, tmp_path)
        assert error.failure == "no_metrics"
        assert "concurrency_4.jsonl holds 2 runs" in error.message
        assert "a file of its own" in error.hint

    def test_of_a_file_that_a_person_names(self, tmp_path: Path) -> None:
        found = parse_file(self.twice(tmp_path))
        assert (found.failure, found.message) == (
            "no_metrics",
            "the file holds 2 runs: nobody can tell which is meant",
        )

    @each(
        ("content", "told"),
        [
            ("\n", "is empty"),
            ((SGLANG / "healthy.jsonl").read_text()[:500], "truncated_output"),
            ('{"kind": "other"}\n', "is not a result"),
        ],
        ids=["empty", "cut", "other"],
    )
    def test_what_is_no_run(self, tmp_path: Path, content: str, told: str) -> None:
        (tmp_path / "concurrency_4.jsonl").write_text(content)
        error = refused_run(SglangBench(), SMALL, 20, tmp_path)
        assert told in f"{error.failure}: {error.message}"


def test_output_tokens_that_are_counted_twice(tmp_path: Path) -> None:
    healthy = json.loads((SGLANG / "healthy.jsonl").read_text())
    fields = {**healthy, "total_output_tokens_retokenized": 100}
    (tmp_path / "concurrency_4.jsonl").write_text(json.dumps(fields))
    workload = replace(SMALL, isl=64, osl=16)
    facts = SglangBench().parse(workload, point(8), tmp_path).facts
    assert facts["output_count_differs"] == "128 tokens reported, 100 in the answers' text"
