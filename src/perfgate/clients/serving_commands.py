"""Load clients of vLLM's benchmark family: how each is called, and how SGLang's file is read.

TensorRT-LLM's benchmark_serving has options as in the DeepSeek-R1 quick start recipe, section
"Benchmarking Performance"; whether the installed release has the client and knows them, the engine
finds out before anything is started. vLLM's works against any OpenAI-compatible server, as ``vllm
bench serve`` (documented in the GPUStack H200 lab, section "Benchmark Script", 0.11.0) and as
benchmark_serving.py before it, from vLLM's source alone; so does ``sglang.bench_serving``, which
adds one JSON line to the end of its file for each run.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.clients.base import Target, client, program_version
from perfgate.clients.logs import content_of, decoded
from perfgate.clients.releases import SGLANG, VLLM
from perfgate.clients.serving_client import (
    ServingClient,
    asked_of,
    reporting,
    requests,
    require_report,
)
from perfgate.core import programs
from perfgate.core.durable_files import write_text
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.checkout import require_package
from perfgate.scenarios.scenario import LoadPoint, Workload

_COMPLETIONS_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
_PERCENTILES = "90,95,99"
_VERSION_WITHIN_S = 120
_CONFIGURATION = "server_info"  # of the server that sglang.bench_serving measured


@client("benchmark_serving")
class BenchmarkServing(ServingClient):
    """Random prompts of one length, or ShareGPT's. Its release is the engine's."""

    name = "benchmark_serving"
    of_engine = True
    program = programs.BENCHMARK_SERVING

    def version(self, build: EngineBuild, locations: Locations) -> str:
        """See `MeasuringProgram.version`; it is part of TensorRT-LLM."""
        require_package(self.program, locations)
        return build.version

    def argv(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """See `ServingClient.argv`.

        Raises:
            InputError: prompts or warm-up requests that this client does not make.
        """
        if point.warmup_requests:
            raise InputError(
                f"{self.name} makes no warm-up requests except one of its own",
                field="workload.warmup_requests",
                found=point.warmup_requests,
                expected="0",
            )
        chat = workload.api == "chat"
        argv = [*target.locations.find(self.program), "--model", target.endpoint.model]
        argv += ["--backend", "openai-chat" if chat else "openai"]
        argv += ["--endpoint", _COMPLETIONS_PATHS["chat"]] if chat else []
        synthetic = workload.dataset == "synthetic"
        argv += self.prompts(target, workload)
        argv += ["--random-prefix-len", "0", "--random-ids"] if synthetic else []
        argv += requests(workload, point)
        argv += ["--ignore-eos"] if workload.ignore_eos else []
        # Prompts as token ids have exactly the asked length; a chat message can only be text.
        argv += ["--tokenize-on-client"] if synthetic and not chat else []
        argv += [] if workload.streaming else ["--non-streaming"]
        return [*argv, *reporting(target, workload, point)]


@client("vllm-benchmark-serving")
class VllmBenchmarkServing(ServingClient):
    """Random prompts of one length, or ShareGPT's. Its release is that of the vLLM which its
    interpreter has: a script has none.
    """

    name = "vllm-benchmark-serving"
    source = "vllm"
    program = programs.VLLM_SCRIPT
    page = "benchmark_serving.py"
    tables = VLLM
    words: tuple[str, ...] = ()

    def argv(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """See `ServingClient.argv`."""
        options = self.options(target)
        if not workload.streaming:
            raise options.refused("workload.streaming", "false", "true: it streams every answer")
        argv = [*target.locations.find(self.program), *self.words]
        argv += ["--model", target.endpoint.model, *options.api(workload)]
        argv += ["--endpoint", _COMPLETIONS_PATHS[workload.api]]
        prompts = self.prompts(target, workload)
        options.given("dataset", prompts[1], field="workload.dataset")  # or refused
        argv += prompts
        argv += options.fixed_length() if workload.dataset == "synthetic" else []
        argv += requests(workload, point)
        if point.warmup_requests:
            warmups = point.warmup_requests
            argv += options.given("warmups", warmups, field="workload.warmup_requests")
        if workload.ignore_eos:
            argv += ["--ignore-eos"]
        elif workload.dataset == "synthetic" and options.table.forces_eos:  # unless told not to
            argv += options.body({"ignore_eos": False}, field="workload.ignore_eos")
        if options.has("temperature"):  # without the option 0 is what the release sends
            argv += options.given("temperature", 0, field="workload")
        if options.table.ready_check_s is not None:
            argv += options.given("ready_check", options.table.ready_check_s, field="workload")
        return [*argv, *reporting(target, workload, point), "--metric-percentiles", _PERCENTILES]


@client("vllm-bench")
class VllmBench(VllmBenchmarkServing):
    """The same client, from when it became a command of vllm."""

    name = "vllm-bench"
    program = programs.VLLM
    page = "vllm bench serve"
    words = ("bench", "serve")

    def version(self, build: EngineBuild, locations: Locations) -> str:
        """See `MeasuringProgram.version`.

        The program imports all of vLLM before it tells, ten seconds on a quiet machine and minutes
        on a busy one: it is asked only where its Python cannot be.
        """
        try:
            return super().version(build, locations)
        except MissingProgram:
            return program_version(self.program, locations, _VERSION_WITHIN_S)


@client("sglang-bench")
class SglangBench(ServingClient):
    """Random token ids of one length, or ShareGPT's conversations."""

    name = "sglang-bench"
    source = "sglang"
    program = programs.SGLANG_BENCH
    page = "sglang.bench_serving"
    tables = SGLANG

    def argv(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """See `ServingClient.argv`."""
        options = self.options(target)
        argv = [*target.locations.find(self.program), *options.api(workload)]
        argv += ["--model", target.endpoint.model]
        # `random` would draw from ShareGPT, and download it.
        argv += self.prompts(target, workload, generated="random-ids")
        argv += options.fixed_length() if workload.dataset == "synthetic" else []
        argv += requests(workload, point)
        argv += options.given("warmups", point.warmup_requests, field="workload.warmup_requests")
        # Some releases put neither into a chat request unless it is said here.
        body = {"temperature": 0, "ignore_eos": workload.ignore_eos}
        argv += options.body(body, field="workload.ignore_eos")
        if not workload.ignore_eos:
            argv += options.given("heed_eos", field="workload.ignore_eos")
        if not workload.streaming:
            argv += options.given("no_stream", field="workload.streaming")
        return [*argv, "--output-file", _result_name(point), *asked_of(target, point)]

    def result(self, folder: Path, point: LoadPoint) -> Mapping[str, Any] | None:
        """See `ServingClient.result`; the one run in the file.

        The client writes the server's whole configuration into it, ``api_key`` and all, which is
        taken out of the file: a run folder is kept, and shown to others.
        """
        path = folder / _result_name(point)
        if not path.is_file():
            return None
        content = content_of(path)
        if not content.strip():
            raise RunError("no_metrics", f"{path.name} is empty")
        require_one_run(content, path.name)
        fields = require_report(decoded(content, path.name), path.name)
        if fields.get(_CONFIGURATION) is not None:
            fields = {**fields, _CONFIGURATION: None}
            write_text(path, json.dumps(fields) + "\n")
        return fields


def _result_name(point: LoadPoint) -> str:
    return f"concurrency_{point.concurrency}.jsonl"


def require_one_run(content: bytes, name: str) -> None:
    """A file of JSON lines has one of them.

    Args:
        content: of the file; anything but several lines with an object each is left to its reader.
        name: the file, for people.

    Raises:
        RunError: ``no_metrics``, it has several runs.
    """
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        raise RunError(
            "no_metrics",
            f"{name} holds {len(lines)} runs: nobody can tell which is meant",
            hint="sglang.bench_serving adds a line to the file for each run: let every run have a "
            "file of its own",
        )
