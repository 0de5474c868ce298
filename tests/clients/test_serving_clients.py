"""benchmark_serving and vllm bench as clients: their command lines, and what they left."""

import json
import sys
from dataclasses import replace
from importlib.metadata import version as metadata_version
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from refusals import refused
from tables import each

from perfgate.clients.base import Client, Target, package_version
from perfgate.clients.benchmark_serving import BenchmarkServing
from perfgate.clients.serving_client import result_name
from perfgate.clients.sglang_bench import SglangBench
from perfgate.clients.vllm_bench import VllmBench, VllmBenchmarkServing
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.core.programs import SGLANG_BENCH, VLLM_SCRIPT
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


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


class TestRelease:
    """A client that does not tell its release is asked for by the interpreter that runs it."""

    BUILD = EngineBuild("tensorrt-llm", "1.0.0", "a")
    INSTALLED = metadata_version("msgspec")

    def test_the_program_tells_where_its_python_cannot(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "#!/bin/sh\necho INFO importing\necho 0.11.0\n"
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", program(tmp_path / "vllm", text))
        assert VllmBench().version(self.BUILD, Locations()) == "0.11.0"
        for body in ("exit 1", "true"):
            program(tmp_path / "vllm", f"#!/bin/sh\n{body}\n")
            told = "does not report its version"
            refused(VllmBench().version, self.BUILD, Locations(), error=MissingProgram, match=told)

    def test_its_python_tells_without_importing_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "vllm-0.32.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
        text = f"#!{sys.executable}\nraise SystemExit('asked')\n"
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("PERFGATE_PROGRAM_VLLM", program(tmp_path / "vllm", text))
        assert VllmBench().version(EngineBuild("vllm", "0.33.0", "a"), Locations()) == "0.32.0"

    def test_of_the_python_that_runs_a_module(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(SGLANG_BENCH.variable, f"{sys.executable} -m sglang.bench_serving")
        assert package_version(SGLANG_BENCH, "msgspec", Locations()) == self.INSTALLED
        lacking = refused(SglangBench().version, self.BUILD, Locations(), error=MissingProgram)
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
            refused(version, self.BUILD, Locations(), error=MissingProgram, match=told)
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
    def test_what_is_no_result_of_the_load(
        self, tmp_path: Path, changes: dict[str, int], missing: str, failure: str, told: str
    ) -> None:
        result = {name: value for name, value in RESULT.items() if name != missing}
        (tmp_path / result_name(ROUND)).write_text(json.dumps(result))
        read, load = BenchmarkServing().parse, replace(WORKLOAD, **changes)
        error = refused(read, load, ROUND, tmp_path, error=RunError, match=told)
        assert error.failure == failure
        (tmp_path / result_name(POINT)).write_text(json.dumps(RESULT))
        error = refused(read, WORKLOAD, POINT, tmp_path, error=RunError, match="16 of 160 requests")
        assert error.failure == "incomplete"

    def test_what_may_be_otherwise(self, tmp_path: Path) -> None:
        assert parse(tmp_path, replace(WORKLOAD, isl=900, api="chat")), "its template adds to it"
        assert parse(tmp_path, replace(WORKLOAD, dataset="sharegpt", isl=None, osl=None))
        found = parse(tmp_path, replace(WORKLOAD, streaming=False), mean_ttft_ms=-1000.0)
        assert not [name for name in found.metrics if name.startswith(("ttft", "tpot", "itl"))]
