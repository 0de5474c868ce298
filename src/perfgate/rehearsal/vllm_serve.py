"""A mock program for `vllm serve`: answers like its OpenAI-compatible server; synthetic answers.

It writes the line of its log that tells its configuration, as its release writes it, and answers
``/server_info`` in its development mode alone.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from perfgate.rehearsal.argparse_options import given as given_options
from perfgate.rehearsal.fault_injection import inject_engine_fault
from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.options import GivenOptions, played
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, end, here
from perfgate.rehearsal.trtllm_serve import Handler as CompletionHandler
from perfgate.rehearsal.trtllm_serve import Server as CompletionServer

_PROGRAM = "vllm serve"
_MODEL_LENGTH = 163840  # of DeepSeek-R1
_LARGEST_GRAPH = 512
_DEVELOPMENT = "VLLM_SERVER_DEV_MODE"
_ALL_HELP_SINCE = _RENAMED_SINCE = (0, 11)
_V1_SINCE = (0, 8)  # the engine whose prefix cache and chunked prefill are on by default


class Server(CompletionServer):
    """The server; knows the text of its configuration, too."""

    def __init__(
        self, address: tuple[str, int], model: str, config: str, playbook: Playbook
    ) -> None:
        self.config = config
        super().__init__(address, model, playbook, Handler)


class Handler(CompletionHandler):
    """The routes that perfgate and the clients use."""

    server: Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        if self.path.partition("?")[0] == "/server_info" and os.environ.get(_DEVELOPMENT) == "1":
            self.answer_json(200, {"vllm_config": self.server.config, SYNTHETIC: True})
        elif self.path == "/health_generate":
            self.answer_json(404, {"detail": "Not Found"})
        elif self.path == "/v1/models":
            self.answer_models(self.server.model, "vllm")
        else:
            super().do_GET()

    def too_long(self) -> str:
        """What is answered to a prompt that is too long; its log tells only the status."""
        return (
            f"This model's maximum context length is {_MODEL_LENGTH} tokens. However, your prompt "
            f"contains at least {_MODEL_LENGTH + 1} input tokens, which exceeds this limit."
        )


def main(argv: Sequence[str]) -> None:
    """Read the command line, and serve until a signal comes."""
    playbook = here("vllm")
    announce(_PROGRAM)
    words = [_hyphened(word) for word in argv]
    if "--help=all" in words and playbook.numbers >= _ALL_HELP_SINCE:
        words = ["--help"]
    elif words == ["--help"] and playbook.numbers >= _ALL_HELP_SINCE:
        print("usage: vllm serve [model_tag] [options]\n\nUse `--help=all` to show all flags.")
        return
    given = given_options(played(playbook, _PROGRAM, engine=True), words)
    host, port = given.text("--host", "127.0.0.1"), given.integer("--port", 8000)
    config = _config(playbook, given, words)
    _start(playbook, given, config)
    inject_engine_fault(playbook, host, str(port))
    name = given.text("--served-model-name") or given.words[0]
    _serve(playbook, (host, port), name, config)


def _hyphened(word: str) -> str:
    """An option with hyphens, as the real parser reads it before it looks for it."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _config(playbook: Playbook, given: GivenOptions, words: Sequence[str]) -> str:
    """The text of its configuration: what it was given, and what it chooses."""
    off = {word for name in given.options for word in given.options[name].off} & set(words)

    def switch(name: str, default: bool) -> bool:
        option = given.options.get(name)
        if option is None or off.intersection(option.off):
            return False
        if option.kind != "flag":
            return given.text(option.options[0], str(default)) == "True"
        return default or given.has(option.options[0])

    eager, is_v1 = switch("enforce_eager", False), playbook.numbers >= _V1_SINCE
    renamed = playbook.numbers > _RENAMED_SINCE
    chunked = "enable_chunked_prefill" if renamed else "chunked_prefill_enabled"
    drafting = given.text("--speculative-config")
    count = json.loads(drafting)["num_speculative_tokens"] if drafting else None
    told: dict[str, Any] = {
        "model": repr(given.words[0]),
        "speculative_config": count
        and f"SpeculativeConfig(method='deepseek_mtp', model=None, num_spec_tokens={count})",
        "trust_remote_code": given.has("--trust-remote-code"),
        "max_seq_len": given.text("--max-model-len") or _MODEL_LENGTH,
        "tensor_parallel_size": given.integer("--tensor-parallel-size", 1),
        "pipeline_parallel_size": given.integer("--pipeline-parallel-size", 1),
        "data_parallel_size": given.integer("--data-parallel-size", 1),
        "quantization": given.text("--quantization") or None,
        "enforce_eager": eager,
        "kv_cache_dtype": given.text("--kv-cache-dtype", "auto"),
        "seed": given.text("--seed") or None,
        "served_model_name": given.text("--served-model-name") or given.words[0],
        "enable_prefix_caching": switch("enable_prefix_caching", is_v1),
        chunked: switch("enable_chunked_prefill", is_v1),
        "compilation_config": _compilation(given, eager=eager, renamed=renamed),
    }
    return ", ".join(f"{name}={value}" for name, value in told.items())


def _compilation(given: GivenOptions, *, eager: bool, renamed: bool) -> str:
    """JSON up to 0.11; later the text of a dictionary, whose modes are members of enumerations."""
    asked = json.loads(given.text("--compilation-config") or "{}")
    level = 0 if eager else asked.get("mode", asked.get("level", 3))
    is_captured = not eager and asked.get("cudagraph_mode") != "NONE"
    largest = int(given.text("--max-cudagraph-capture-size") or _LARGEST_GRAPH)
    listed = given.all("--cudagraph-capture-sizes") or given.all("--cuda-graph-sizes")
    if len(listed) == 1 and not renamed:
        largest, listed = int(listed[0]), ()
    sizes = sorted(map(int, listed)) or [1, 2, 4, *range(8, largest + 1, 8)]
    captured = sizes if is_captured else []
    if not renamed:
        mode: object = [2, 1] if is_captured else 0
        told = {"level": level, "cudagraph_mode": mode, "cudagraph_capture_sizes": captured}
        return json.dumps(told, separators=(",", ":"))
    graphs = "FULL_AND_PIECEWISE: (2, 1)" if is_captured else "NONE: 0"
    modes = {0: "NONE: 0", 3: "VLLM_COMPILE: 3"}
    return (
        f"{{'mode': <CompilationMode.{modes[level]}>, 'cudagraph_mode': <CUDAGraphMode.{graphs}>, "
        f"'cudagraph_capture_sizes': {captured}}}"
    )


def _start(playbook: Playbook, given: GivenOptions, config: str) -> None:
    """What it logs until it is ready, on standard output; some words sound worse than they are."""
    api, core = "(APIServer pid=702) INFO", "(EngineCore pid=812) INFO"
    print(
        "WARNING [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase"
    )
    if playbook.numbers >= (0, 14):
        state = "disabled" if "--no-async-scheduling" in sys.argv else "enabled"
        print(f"{api} 11-23 06:31:51 [vllm.py:1109] Asynchronous scheduling is {state}.")
    tokens = given.text("--max-num-batched-tokens") or "8192"
    print(
        f"{api} 11-23 06:31:51 [scheduler.py:205] Chunked prefill is enabled with "
        f"max_num_batched_tokens={tokens}."
    )
    kind = "a V1 LLM" if playbook.numbers >= _V1_SINCE else "an LLM"
    print(
        f"{core} 11-23 06:32:06 [core.py:77] Initializing {kind} engine (v{playbook.version}) "
        f"with config: {config}"
    )
    print(f"{core} 11-23 06:32:29 [kv_cache_utils.py:1087] GPU KV cache size: 840,160 tokens")
    sys.stdout.flush()


def _serve(playbook: Playbook, address: tuple[str, int], model: str, config: str) -> None:
    host, port = address
    try:
        server = Server(address, model, config, playbook)
    except OSError:
        told = FAULTS["port_in_use"].written(playbook.numbers, host, str(port), playbook.engine)
        print(told, end="", file=sys.stderr)
        raise SystemExit(1) from None
    signal.signal(signal.SIGTERM, _ended)
    for line in ("Started server process [702]", "Application startup complete."):
        print(f"INFO:     {line}", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        end("interrupted", 128 + signal.SIGINT)


def _ended(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)  # as the real one ends
