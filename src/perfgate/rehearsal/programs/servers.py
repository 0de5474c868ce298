"""Mock programs for the served engines: OpenAI-compatible servers whose answers are synthetic.

`trtllm-serve`, `vllm serve` and `python3 -m sglang.launch_server`: each reads its options as its
release does, writes the log that tells its configuration, and serves the routes that perfgate and
the clients use. vLLM answers ``/server_info`` in its development mode alone.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, crash, end, here
from perfgate.rehearsal.programs import healthy_log as healthy
from perfgate.rehearsal.programs.http_json import JsonHandler, JsonServer
from perfgate.rehearsal.programs.llm_api import read_options
from perfgate.rehearsal.programs.report_format import printed
from perfgate.rehearsal.programs.sglang_settings import RefusedSettings, resolved

_ANSWER = (
    " New York is a state in the northeastern United States. It is bordered by New Jersey and"
    " Pennsylvania to the south, Connecticut, Massachusetts and Vermont to the east."
)
_MOST_TOKENS = 16  # where the request names none, as in OpenAI's API
_GRAPHS_SINCE = (1, 0)  # TensorRT-LLM captures them by default (#5480)
_MODEL_LENGTH = 163840  # of DeepSeek-R1
_LARGEST_GRAPH = 512  # of vLLM
_ALL_HELP_SINCE = (0, 11)  # of vLLM
_RENAMED_SINCE = (0, 12)  # of vLLM
_V1_SINCE = (0, 8)  # vLLM's engine whose prefix cache and chunked prefill are on by default
_TWO_PATHS_SINCE = (0, 5, 23)  # SGLang's /server_info; the other is deprecated


class _Engine(NamedTuple):
    """How an engine's server differs from the others.

    Attributes:
        owner: of the model that it lists.
        host: where it listens by default.
        port: likewise.
        taken: exit status where the port is taken.
        ended: exit status after SIGTERM.
        ready: the engine's own line once it serves.
        too_long: answer to a prompt that is too long; empty: the line of the log.
    """

    owner: str
    host: str = "127.0.0.1"
    port: int = 8000
    taken: int = 1
    ended: int = 0
    ready: str = ""
    too_long: str = ""


_ENGINES = {
    "tensorrt-llm": _Engine(
        "perfgate rehearsal: a mock program", host="localhost", ended=128 + signal.SIGTERM
    ),
    "vllm": _Engine(
        "vllm",
        too_long=f"This model's maximum context length is {_MODEL_LENGTH} tokens. However, your "
        f"prompt contains at least {_MODEL_LENGTH + 1} input tokens, which exceeds this limit.",
    ),
    "sglang": _Engine(
        "sglang",
        port=30000,
        taken=3,
        ready="The server is fired up and ready to roll!\n",
        too_long="Requested token count exceeds the model's maximum context length of "
        f"{_MODEL_LENGTH} tokens. You requested a total of 170000 tokens.",
    ),
}
_Routes = Mapping[str, Mapping[str, Any] | None]
"""Path → what is answered; None: nothing but the status 200."""


class _Server(JsonServer):
    """The server; knows the model's name, its other routes and the playbook."""

    def __init__(
        self, address: tuple[str, int], playbook: Playbook, model: str, routes: _Routes
    ) -> None:
        self.playbook = playbook
        self.model = model
        self.routes = routes
        super().__init__(address, _Handler)


class _Handler(JsonHandler):
    """The routes that perfgate and the clients use."""

    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        path = self.path.partition("?")[0]
        if path == "/v1/models":
            self.answer_models(self.server.model, _ENGINES[self.server.playbook.engine].owner)
        elif path not in self.server.routes:
            self.answer_json(404, {"detail": "Not Found"})
        else:
            content = self.server.routes[path]
            self.answer(200, b"" if content is None else json.dumps(content).encode())

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        length = int(self.headers.get("Content-Length") or 0)
        try:
            asked = json.loads(self.rfile.read(length))
        except ValueError:
            self.answer_json(400, _error("Invalid JSON"))
            return
        chat = self.path == "/v1/chat/completions"
        if not chat and self.path != "/v1/completions":
            self.answer_json(404, {"detail": "Not Found"})
        elif asked.get("model") != self.server.model:
            self.answer_json(404, _error(f"The model `{asked.get('model')}` does not exist."))
        elif asked.get("max_tokens") != 1 and self.server.playbook.fault_at("answers"):
            self.answer_json(400, _error(_too_long(self.server.playbook)))
        else:
            self.answer_json(200, _completion(asked, self.server.playbook, chat=chat))

    def log_message(self, *words: object) -> None:
        """One line a request, as uvicorn writes it."""
        host, port = self.client_address[:2]
        status = words[2] if len(words) > 2 else ""
        print(f'INFO:     {host}:{port} - "{self.requestline}" {status}', flush=True)


def _error(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "code": 400}


def _too_long(playbook: Playbook) -> str:
    """What is answered to a prompt that is too long; TensorRT-LLM's log is told, too."""
    if answer := _ENGINES[playbook.engine].too_long:
        return answer
    told = FAULTS["request_too_long"].written(playbook.numbers)
    print(told, file=sys.stderr)
    return told.strip().rpartition("RequestError: ")[2]


def _completion(asked: dict[str, Any], playbook: Playbook, *, chat: bool) -> dict[str, Any]:
    """A word counts as a token; a document's answer has as many as were asked for."""
    prompts = asked.get("prompt", "")
    count = len(prompts) if isinstance(prompts, list) and not chat else 1
    limit = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or _MOST_TOKENS)
    prompt = prompts if isinstance(prompts, str) else ""
    said_to_it = playbook.reply(prompt, _ANSWER)
    words = said_to_it.split(" ")[1:]
    is_whole = prompt in playbook.scenario_part.replies or len(words) < 2
    answer = said_to_it if is_whole else " " + " ".join(words[:limit])
    each = limit if is_whole else min(limit, len(words))
    tokens, reason = count * each, "length" if each == limit else "stop"
    said: dict[str, Any] = {"text": answer}
    if chat:
        said = {"message": {"role": "assistant", "content": answer}}
    said |= {"finish_reason": reason, "stop_reason": None}
    return {
        "id": "cmpl-rehearsal",
        "object": "chat.completion" if chat else "text_completion",
        "created": 0,
        "model": asked["model"],
        "choices": [{"index": index, **said} for index in range(count)],
        "usage": {
            "prompt_tokens": 6 * count,
            "total_tokens": 6 * count + tokens,
            "completion_tokens": tokens,
        },
        SYNTHETIC: True,
    }


def _serve(playbook: Playbook, given: GivenOptions, model: str, routes: _Routes) -> None:
    """Answer until a signal comes; or meet with the fault of the start.

    Args:
        playbook: of this program.
        given: its options.
        model: name under which it is served.
        routes: those of the engine beside ``/v1``.
    """
    engine = _ENGINES[playbook.engine]
    host, port = given.text("--host", engine.host), given.integer("--port", engine.port)
    playbook.inject_engine_fault(host, str(port))
    try:
        server = _Server((host, port), playbook, model, routes)
    except OSError:
        told = FAULTS["port_in_use"].written(playbook.numbers, host, str(port), playbook.engine)
        print(told, end="", file=sys.stderr)
        raise SystemExit(engine.taken) from None

    def end_well(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(engine.ended)

    signal.signal(signal.SIGTERM, end_well)
    place = {"host": host, "port": port}
    text = printed(__file__, f"{playbook.engine}-serves", playbook.numbers, place)
    print(text, end="", file=sys.stderr, flush=True)
    print(engine.ready, end="", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        end("interrupted", 128 + signal.SIGINT)


def trtllm(argv: Sequence[str]) -> None:
    """``trtllm-serve MODEL``, or ``trtllm-serve serve MODEL``."""
    # The subcommand is this one where none is named.
    words = argv[1:] if argv[:1] == ["serve"] else argv
    playbook, given = started("trtllm-serve serve", words, engine=True)
    options = read_options(playbook, given)
    fraction = given.number("--kv_cache_free_gpu_memory_fraction", 0.9)
    written = options.get("kv_cache_config")
    if isinstance(written, dict) and playbook.numbers < (1, 3):
        fraction = written.get("free_gpu_memory_fraction", 0.9)  # it replaces the command line's
    world_size = given.integer("--tp_size", 1) * given.integer("--pp_size", 1)
    by_default = playbook.numbers >= _GRAPHS_SINCE
    said = healthy.resolved(playbook, options, graphs_by_default=by_default)
    folder = Path(given.words[0])
    healthy.engine_starts(given.words[0], world_size, fraction, said)
    model = folder.resolve().name if folder.is_dir() else given.words[0]
    version = {"version": playbook.version}
    routes = {"/health": None, "/health_generate": None, "/version": version}
    _serve(playbook, given, model, routes)


def vllm(argv: Sequence[str]) -> None:
    """``vllm serve MODEL``."""
    playbook = here("vllm")
    announce("vllm serve")
    words = [_hyphened(word) for word in argv]
    if "--help=all" in words and playbook.numbers >= _ALL_HELP_SINCE:
        words = ["--help"]
    elif words == ["--help"] and playbook.numbers >= _ALL_HELP_SINCE:
        print("usage: vllm serve [model_tag] [options]\n\nUse `--help=all` to show all flags.")
        return
    given = read(playbook, "vllm serve", words, engine=True)
    config = _vllm_config(playbook, given, words)
    start = {
        "scheduling": "disabled" if "--no-async-scheduling" in words else "enabled",
        "tokens": given.text("--max-num-batched-tokens") or "8192",
        "version": playbook.version,
        "config": config,
    }
    print(printed(__file__, "vllm-starts", playbook.numbers, start), end="", flush=True)
    routes: dict[str, Any] = {"/health": None, "/version": {"version": playbook.version}}
    if os.environ.get("VLLM_SERVER_DEV_MODE") == "1":
        routes["/server_info"] = {"vllm_config": config, SYNTHETIC: True}
    _serve(playbook, given, given.text("--served-model-name") or given.words[0], routes)


def _hyphened(word: str) -> str:
    """An option with hyphens, as the real parser reads it before it looks for it."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _vllm_config(playbook: Playbook, given: GivenOptions, words: Sequence[str]) -> str:
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
    renamed = playbook.numbers >= _RENAMED_SINCE
    chunked = "enable_chunked_prefill" if renamed else "chunked_prefill_enabled"
    drafting = given.text("--speculative-config")
    count = json.loads(drafting)["num_speculative_tokens"] if drafting else None
    values: dict[str, Any] = {
        "model": given.words[0],
        "drafting": count
        and f"SpeculativeConfig(method='deepseek_mtp', model=None, num_spec_tokens={count})",
        "trusted": given.has("--trust-remote-code"),
        "length": given.text("--max-model-len") or _MODEL_LENGTH,
        "tp": given.integer("--tensor-parallel-size", 1),
        "pp": given.integer("--pipeline-parallel-size", 1),
        "dp": given.integer("--data-parallel-size", 1),
        "quantization": given.text("--quantization") or None,
        "eager": eager,
        "kv_cache_dtype": given.text("--kv-cache-dtype", "auto"),
        "seed": given.text("--seed") or None,
        "name": given.text("--served-model-name") or given.words[0],
        "prefixes": switch("enable_prefix_caching", is_v1),
        "chunks": f"{chunked}={switch('enable_chunked_prefill', is_v1)}",
        "compilation": _compilation(given, eager=eager, renamed=renamed),
    }
    return printed(__file__, "vllm-config", playbook.numbers, values)


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


def sglang(argv: Sequence[str]) -> None:
    """``python3 -m sglang.launch_server``: it changes the settings that it is given."""
    playbook = here("sglang")
    announce("sglang.launch_server")
    given = read(playbook, "sglang.launch_server", argv, engine=True)
    try:
        settings = resolved(given, playbook.version, playbook.scenario_part.gpu)
    except RefusedSettings as error:
        crash(f"AssertionError: {error}")
    settings[SYNTHETIC] = True
    start = {
        **settings,
        "path": given.text("--model-path"),
        "is_limited": settings["max_running_requests"] == 48,
        # Without a limit the scheduler takes one from the size of the KV cache.
        "admitted": settings["max_running_requests"] or 4096,
        "length": _MODEL_LENGTH,
    }
    print(printed(__file__, "sglang-starts", playbook.numbers, start), end="", flush=True)
    info = {"model_path": settings["model_path"], "tokenizer_path": settings["model_path"]}
    routes: dict[str, Any] = {"/get_model_info": info, "/get_server_info": settings}
    routes |= {"/health": None, "/health_generate": None}
    if playbook.numbers >= _TWO_PATHS_SINCE:
        routes["/server_info"] = settings
    _serve(playbook, given, str(settings["served_model_name"]), routes)
