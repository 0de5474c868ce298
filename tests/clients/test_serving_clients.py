"""benchmark_serving and vllm bench as clients: their command lines, and what they left."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from tables import each

from perfgate.clients.base import Client, Target
from perfgate.clients.benchmark_serving import BenchmarkServing
from perfgate.clients.serving_client import result_name
from perfgate.clients.vllm_bench import VllmBench
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.scenarios.scenario import LoadPoint, Workload

DATA = Path(__file__).parents[1] / "data"
RESULT: dict[str, Any] = json.loads((DATA / "benchmark_serving" / "result.json").read_text())
MODEL = "deepseek-ai/DeepSeek-R1-0528"
TARGET = Target(Endpoint("127.0.0.1", 8000, MODEL), MODEL, Locations(on_paper=True))
assert SCENARIO.workload is not None
WORKLOAD = replace(SCENARIO.workload, client="benchmark_serving", isl=1024, osl=1024)
POINT = LoadPoint(concurrency=32, requests=160, warmup_requests=0, seed=32)
ROUND = replace(POINT, requests=16)
FOLDER = Path("/runs/c32")


def argv(
    client: Client, workload: Workload = WORKLOAD, point: LoadPoint = POINT, target: Target = TARGET
) -> str:
    return " ".join(client.command(target, workload, point, FOLDER).argv)


def parse(folder: Path, workload: Workload = WORKLOAD, **changes: Any) -> Measurement:
    (folder / result_name(ROUND)).write_text(json.dumps({**RESULT, **changes}))
    return BenchmarkServing().parse(workload, ROUND, folder)


CHAT = {"api": "chat"}
WHOLE = {"streaming": False, "ignore_eos": False}
SHAREGPT = {"dataset": "sharegpt", "isl": None, "osl": None}


class TestBenchmarkServing:
    def test_is_called_as_the_quick_start_recipe_calls_it(self) -> None:
        assert argv(BenchmarkServing()) == (
            "python -m tensorrt_llm.serve.scripts.benchmark_serving "
            "--model deepseek-ai/DeepSeek-R1-0528 --backend openai --dataset-name random "
            "--random-input-len 1024 --random-output-len 1024 --random-prefix-len 0 --random-ids "
            "--num-prompts 160 --max-concurrency 32 --ignore-eos --tokenize-on-client "
            "--percentile-metrics ttft,tpot,itl,e2el "
            "--save-result --result-dir . --result-filename concurrency_32.json "
            "--host 127.0.0.1 --port 8000 --seed 32"
        )

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
    def test_other_loads(
        self, load: dict[str, Any], capped: bool, present: str, absent: str
    ) -> None:
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
        build = EngineBuild("tensorrt-llm", "1.1.0", "a")
        assert BenchmarkServing().version(build, Locations(on_paper=True)) == "1.1.0"
        monkeypatch.setenv("PERFGATE_PROGRAM_BENCHMARK_SERVING", f"{sys.executable} -m any.thing")
        with pytest.raises(MissingProgram, match="has no package tensorrt_llm"):
            BenchmarkServing().version(build, Locations())


class TestVllmBench:
    def test_tells_its_own_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program = tmp_path / "vllm"
        program.write_text("#!/bin/sh\necho INFO importing\necho 0.11.0\n")
        program.chmod(0o755)
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", str(program))
        assert (
            VllmBench().version(EngineBuild("tensorrt-llm", "1.0.0", "a"), Locations()) == "0.11.0"
        )

    def test_its_python_tells_without_importing_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "vllm-0.32.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
        program = tmp_path / "vllm"
        program.write_text(f"#!{sys.executable}\nraise SystemExit('asked')\n")
        program.chmod(0o755)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", str(program))
        assert VllmBench().version(EngineBuild("vllm", "0.33.0", "a"), Locations()) == "0.32.0"

    @pytest.mark.parametrize("body", ["exit 1", "true"])
    def test_a_program_that_does_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
    ) -> None:
        program = tmp_path / "vllm"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", str(program))
        with pytest.raises(MissingProgram, match="does not report its version"):
            VllmBench().version(EngineBuild("tensorrt-llm", "1.0.0", "a"), Locations())


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

    def test_fewer_requests_than_asked(self, tmp_path: Path) -> None:
        (tmp_path / result_name(POINT)).write_text(json.dumps(RESULT))
        with pytest.raises(RunError, match="16 of 160 requests") as caught:
            BenchmarkServing().parse(WORKLOAD, POINT, tmp_path)
        assert caught.value.failure == "incomplete"

    @pytest.mark.parametrize("key", ["mean_ttft_ms", "mean_itl_ms", "mean_e2el_ms"])
    def test_a_latency_that_is_missing(self, tmp_path: Path, key: str) -> None:
        without = {name: value for name, value in RESULT.items() if name != key}
        (tmp_path / result_name(ROUND)).write_text(json.dumps(without))
        with pytest.raises(RunError, match="the report has no mean") as caught:
            BenchmarkServing().parse(WORKLOAD, ROUND, tmp_path)
        assert caught.value.failure == "no_metrics"

    def test_what_may_be_otherwise(self, tmp_path: Path) -> None:
        assert parse(tmp_path, replace(WORKLOAD, isl=900, api="chat")), "its template adds to it"
        assert parse(tmp_path, replace(WORKLOAD, dataset="sharegpt", isl=None, osl=None))
        found = parse(tmp_path, replace(WORKLOAD, streaming=False), mean_ttft_ms=-1000.0)
        assert not [name for name in found.metrics if name.startswith(("ttft", "tpot", "itl"))]

    @pytest.mark.parametrize("change", [{"isl": 900}, {"osl": 900}])
    def test_other_lengths_than_asked(self, tmp_path: Path, change: dict[str, int]) -> None:
        with pytest.raises(RunError, match="not the 900 requested") as caught:
            parse(tmp_path, replace(WORKLOAD, **change))
        assert caught.value.failure == "incomplete"
