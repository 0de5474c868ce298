"""Load clients of vLLM's benchmark family: how each is called, and what they leave.

TensorRT-LLM's benchmark_serving has options as in the DeepSeek-R1 quick start recipe, section
"Benchmarking Performance"; whether the installed release has the client and knows them, the engine
finds out before anything is started. vLLM's works against any OpenAI-compatible server, as ``vllm
bench serve`` (documented in the GPUStack H200 lab, section "Benchmark Script", 0.11.0) and as
benchmark_serving.py before it, from vLLM's source alone; so does ``sglang.bench_serving``, which
adds one JSON line to the end of its file for each run.
"""

import json
import re
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from perfgate.clients import datasets, serving_report
from perfgate.clients.base import (
    Client,
    Target,
    client,
    package_version,
    program_version,
    unsupported,
    with_asked,
)
from perfgate.clients.logs import content_of, decoded, left, printed, require
from perfgate.clients.releases import SGLANG, VLLM, BenchOptions, Tables, release
from perfgate.clients.report_tables import FROM_STREAM, LATENCIES, number_of, require_lengths
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.files.durable_files import write_text
from perfgate.core.measurement import Measurement
from perfgate.core.programs import programs, raw_log
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.tensorrt_llm.checkout import require_package
from perfgate.scenarios.scenario import LoadPoint, Workload

LENGTH_TOLERANCE = 0.01  # of the asked ISL and OSL, on the mean over all requests …
SPECIAL_TOKENS = 2  # … or so many tokens: those that a tokenizer adds, or an encoder joins
_COMPLETIONS_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
_PERCENTILES = "90,95,99"
_CONFIGURATION = "server_info"  # of the server that sglang.bench_serving measured


class ServingClient(Client):
    """One of the family, with a release of its own; the results of all are read alike.

    Attributes:
        program: what is called.
        page: its name on recorded pages.
        tables: which of its releases knows what.
        result_name: its result's file, as the quick start recipe's bench.sh has it.
    """

    program: programs.Program
    page: str
    tables: Tables
    result_name = "concurrency_{}.json"

    def version(self, locations: Locations) -> str:
        """See `Client.version`; the client's own, whatever engine it measures."""
        return package_version(self.program, self.source, locations)

    def options(self, target: Target) -> BenchOptions:
        """The options of the release that the target names; unknown, of the newest one."""
        table = release(self.tables, target.client_version, self.page)
        return BenchOptions(self.name, table, self.page)

    def prompts(self, target: Target, workload: Workload, generated: str = "random") -> list[str]:
        """Options that take prompts from the ShareGPT conversations, or generate them.

        Args:
            target: where the conversations are.
            workload: what is asked.
            generated: the client's word for prompts that it generates.

        Raises:
            InputError: the person's file is missing, or the prompts are of another kind.
        """
        if workload.dataset == "sharegpt":
            path = datasets.sharegpt(target.locations)
            return ["--dataset-name", "sharegpt", "--dataset-path", str(path)]
        if workload.dataset != "synthetic" or workload.isl is None or workload.osl is None:
            expected = "dataset synthetic, isl and osl given; or dataset sharegpt"
            raise unsupported(workload, f"{self.name} does not support these prompts", expected)
        argv = ["--dataset-name", generated, "--random-input-len", str(workload.isl)]
        return [*argv, "--random-output-len", str(workload.osl)]

    def reporting(self, target: Target, workload: Workload, point: LoadPoint) -> list[str]:
        """Options for the result: its metrics, its file in the client's folder; server and seed.

        All latencies that exist are asked for; by default end-to-end latency is left out.
        """
        known = LATENCIES if workload.streaming else [x for x in LATENCIES if x not in FROM_STREAM]
        argv = ["--percentile-metrics", ",".join(known), "--save-result", "--result-dir", "."]
        argv += ["--result-filename", self.result_name.format(point.concurrency)]
        return [*argv, *asked_of(target, point)]

    def result(self, path: Path) -> Mapping[str, Any]:
        """The result file, decoded.

        Raises:
            RunError: it is cut, or no result.
        """
        return require_report(left(path), path.name)

    def parse(self, workload: Workload, point: LoadPoint, folder: Path) -> Measurement:
        """See `Client.parse`; the result file is the source, the printed table the fallback."""
        path = folder / self.result_name.format(point.concurrency)
        try:
            if path.is_file():
                measured = serving_report.parse(self.result(path), streaming=workload.streaming)
            else:
                words, is_printed = serving_report.WORDS, serving_report.is_printed
                lines = printed(self.name, folder, "client", words, is_printed)
                measured = serving_report.parse_printed(lines, streaming=workload.streaming)
            done = measured.facts["requests_completed"]
            message = f"{done} of {point.requests} requests were completed"
            require(done == point.requests, "incomplete", message)
        except RunError as error:
            raise explained(error, self.name, point, folder) from error
        needed = [*(FROM_STREAM if workload.streaming else ()), "e2el"]
        for short in needed if workload.osl != 1 else ["e2el"]:
            is_there = f"{short}_mean_ms" in measured.metrics
            require(is_there, "no_metrics", f"the report has no mean {short.upper()}")
        isl, osl = (number_of(measured.facts, name) or 0.0 for name in ("isl", "osl"))
        hint = "check that the prompts are made with the model's own tokenizer"
        require_lengths(workload, isl, [osl], LENGTH_TOLERANCE, SPECIAL_TOKENS, hint)
        counted = serving_report.count_facts(measured.facts, workload)
        facts = {"client": self.name, **measured.facts, **counted}
        return with_asked(Measurement(measured.metrics, facts), point)


def asked_of(target: Target, point: LoadPoint) -> list[str]:
    """Options for the server that is asked, its tokenizer where that has another name, the seed."""
    argv = ["--host", target.endpoint.host, "--port", str(target.endpoint.port)]
    if target.tokenizer != target.endpoint.model:
        argv += ["--tokenizer", target.tokenizer]
    return [*argv, "--seed", str(point.seed)]


def requests(workload: Workload, point: LoadPoint) -> list[str]:
    """Options that say how many requests are made, and that hold them back."""
    argv = ["--num-prompts", str(point.requests)]
    argv += ["--max-concurrency", str(point.concurrency)] if point.capped else []
    if workload.max_request_rate is not None:
        argv += ["--request-rate", format(workload.max_request_rate, "g")]
    return argv


def require_report(fields: Any, name: str) -> Mapping[str, Any]:
    """A decoded result file, which is a report.

    Raises:
        RunError: ``no_metrics``, it is anything else.
    """
    if not serving_report.is_report(fields):
        raise RunError("no_metrics", f"{name} is not a result of a serving benchmark")
    found: Mapping[str, Any] = fields
    return found


_MOST = 3
_WORDS = ("error", "failed")
# vLLM since 0.14 lists the first ten, some as a traceback, whose last line is the error; SGLang
# tells none but that of a failed warm-up.
_ERROR = re.compile(
    r"Error \d+: (?!Traceback).*|[\w.]+(?:Error|Exception)(?:: .*)?"
    r"|.*\b(?:Warmup failed|Initial test run failed)\b.*"
)
_ALL = (
    "no number of this run was measured. The first error above says why: the server is gone or "
    "another one's (`curl /v1/models`), the model has another name there, or a prompt is longer "
    "than the server takes"
)
_SOME = (
    "a server that dies in mid-run leaves throughput and latencies of the requests before, which "
    "look healthy: look at the end of the server's log, then at the errors above"
)


def explained(error: RunError, client: str, point: LoadPoint, folder: Path) -> RunError:
    """The error of an incomplete run with what the client printed of it, and the next step.

    Args:
        error: any; what is not about requests comes back as it is.
        client: its name.
        point: what was asked.
        folder: where it ran.
    """
    if error.failure != "incomplete":
        return error
    none_done = error.message.startswith("0 ") or ", 0 were completed" in error.message
    done = f"none of {point.requests} requests was completed" if none_done else error.message
    evidence, hint = (*error.evidence, *_printed(folder)), _ALL if none_done else _SOME
    message = f"{done}, though {client} ended with status 0"
    return RunError("incomplete", message, evidence=evidence[: _MOST + 1], hint=hint)


def _printed(folder: Path) -> tuple[str, ...]:
    """The first lines that tell why a request failed."""
    logs = (raw_log.lines_with(folder / name, _WORDS) for name in ("client.out", "client.err"))
    lines = (line.strip() for log in logs for _, line in log)
    return tuple(dict.fromkeys(islice(filter(_ERROR.fullmatch, lines), _MOST)))


@client("benchmark_serving")
class BenchmarkServing(ServingClient):
    """Random prompts of one length, or ShareGPT's. Its release is the engine's."""

    of_engine = True
    program = programs.BENCHMARK_SERVING
    require = staticmethod(partial(require_package, program))  # it is part of TensorRT-LLM

    def command(self, target: Target, workload: Workload, point: LoadPoint) -> Command:
        """See `Client.command`.

        Raises:
            InputError: prompts or warm-up requests that this client does not make.
        """
        if point.warmup_requests:
            problem = f"{self.name} makes no warm-up requests except one of its own"
            field, found = "workload.warmup_requests", point.warmup_requests
            raise InputError(problem, field=field, found=found, expected="0")
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
        return Command((*argv, *self.reporting(target, workload, point)))


@client("vllm-benchmark-serving")
class VllmBenchmarkServing(ServingClient):
    """Random prompts of one length, or ShareGPT's. Its release is that of the vLLM which its
    interpreter has: a script has none.
    """

    source = "vllm"
    program = programs.VLLM_SCRIPT
    page = "benchmark_serving.py"
    tables = VLLM
    words: tuple[str, ...] = ()

    def command(self, target: Target, workload: Workload, point: LoadPoint) -> Command:
        """See `Client.command`."""
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
        argv += [*self.reporting(target, workload, point), "--metric-percentiles", _PERCENTILES]
        return Command(tuple(argv))


@client("vllm-bench")
class VllmBench(VllmBenchmarkServing):
    """The same client, from when it became a command of vllm."""

    program = programs.VLLM
    page = "vllm bench serve"
    words = ("bench", "serve")

    def version(self, locations: Locations) -> str:
        """See `Client.version`.

        The program imports all of vLLM before it tells, ten seconds on a quiet machine and minutes
        on a busy one: it is asked only where its Python cannot be.
        """
        try:
            return super().version(locations)
        except MissingProgram:
            return program_version(self.program, locations)


@client("sglang-bench")
class SglangBench(ServingClient):
    """Random token ids of one length, or ShareGPT's conversations."""

    source = "sglang"
    program = programs.SGLANG_BENCH
    page = "sglang.bench_serving"
    tables = SGLANG
    result_name = "concurrency_{}.jsonl"

    def command(self, target: Target, workload: Workload, point: LoadPoint) -> Command:
        """See `Client.command`."""
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
        argv += ["--output-file", self.result_name.format(point.concurrency)]
        return Command((*argv, *asked_of(target, point)))

    def result(self, path: Path) -> Mapping[str, Any]:
        """See `ServingClient.result`; the one run in the file.

        The client writes the server's whole configuration into it, ``api_key`` and all, which is
        taken out of the file: a run folder is kept, and shown to others.
        """
        content = content_of(path)
        require(content.strip(), "no_metrics", f"{path.name} is empty")
        require_one_run(content, path.name)
        fields = require_report(decoded(content, path.name), path.name)
        if fields.get(_CONFIGURATION) is not None:
            fields = {**fields, _CONFIGURATION: None}
            write_text(path, json.dumps(fields) + "\n")
        return fields


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
