"""sglang.bench_serving: SGLang's load client, as it measures any OpenAI-compatible server.

It adds one JSON line to the end of its file for each run.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.clients.base import Target, client
from perfgate.clients.logs import content_of, decoded
from perfgate.clients.releases import SGLANG
from perfgate.clients.serving_client import ServingClient, asked_of, requests, require_report
from perfgate.core.durable_files import write_text
from perfgate.core.errors import RunError
from perfgate.core.programs import SGLANG_BENCH
from perfgate.scenarios.scenario import LoadPoint, Workload

_CONFIGURATION = "server_info"


@client("sglang-bench")
class SglangBench(ServingClient):
    """Random token ids of one length, or ShareGPT's conversations."""

    name = "sglang-bench"
    source = "sglang"
    program = SGLANG_BENCH
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
