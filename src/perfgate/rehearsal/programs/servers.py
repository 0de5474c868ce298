"""Mock programs for the served engines: OpenAI-compatible servers whose answers are synthetic.

`trtllm-serve`, `vllm serve` and `python3 -m sglang.launch_server`: each reads its options as its
release does, writes the log that tells its configuration, and serves the routes that perfgate and
the clients use. vLLM answers ``/server_info`` in its development mode alone.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, end, here
from perfgate.rehearsal.programs import llm_api
from perfgate.rehearsal.programs.http_json import JsonHandler, JsonServer
from perfgate.rehearsal.programs.report_format import facts, option_values, printed
from perfgate.rehearsal.programs.sglang_settings import resolved

_MOST_TOKENS = 16  # where the request names none, as in OpenAI's API
_GRAPHS_SINCE = (1, 0)  # TensorRT-LLM captures them by default (#5480)
_MODEL_LENGTH = 163840  # of DeepSeek-R1
_LARGEST_GRAPH = 512  # of vLLM
_ALL_HELP_SINCE = (0, 11)  # of vLLM
_RENAMED_SINCE = (0, 12)  # of vLLM
_V1_SINCE = (0, 8)  # vLLM's engine whose prefix cache and chunked prefill are on by default
_TWO_PATHS_SINCE = (0, 5, 23)  # SGLang's /server_info; the other is deprecated


_Routes = Mapping[str, Mapping[str, Any]]
"""Path → what is answered."""


class _Server(JsonServer):
    """The server; knows the model's name, its other routes and the playbook."""

    playbook: Playbook
    model: str
    routes: _Routes


class _Handler(JsonHandler):
    """The routes that perfgate and the clients use."""

    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        path = self.path.partition("?")[0]
        if path == "/health":
            self.answer(200, b"")
        elif path == "/v1/models":
            self.answer_models(self.server.model, _engine(self.server.playbook)["owner"])
        else:
            content = self.server.routes.get(path)
            self.answer_json(200 if content else 404, content or {"detail": "Not Found"})

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
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
        print(f'INFO:     {host}:{port} - "{self.requestline}" {words[2]}', flush=True)


def _error(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "code": 400}


def _engine(playbook: Playbook) -> Mapping[str, Any]:
    """How the engine's server differs from the others."""
    return facts(__file__, playbook.engine)


def _too_long(playbook: Playbook) -> str:
    """What is answered to a prompt that is too long; TensorRT-LLM's log is told, too."""
    told = FAULTS["request_too_long"].written(playbook.engine, playbook.numbers)
    print(told, end="", file=sys.stderr)
    return str(_engine(playbook)["too_long"])


def _completion(asked: dict[str, Any], playbook: Playbook, *, chat: bool) -> dict[str, Any]:
    """A word counts as a token; a document's answer has as many as were asked for."""
    prompts = asked.get("prompt", "")
    count = len(prompts) if isinstance(prompts, list) and not chat else 1
    limit = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or _MOST_TOKENS)
    prompt = prompts if isinstance(prompts, str) else ""
    said_to_it = playbook.reply(prompt, facts(__file__, "every")["answer"])
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
        routes: those of the engine beside ``/v1`` and ``/health``.
    """
    engine = _engine(playbook)
    host, port = given.get("--host", engine["host"]), given.get("--port", engine["port"])
    playbook.inject_engine_fault((host, port))
    try:
        server = _Server((host, port), _Handler)
    except OSError:
        told = FAULTS["port_in_use"].written(playbook.engine, playbook.numbers, (host, port))
        print(told, end="", file=sys.stderr)
        raise SystemExit(engine["taken"]) from None
    server.playbook, server.model, server.routes = playbook, model, routes

    def end_well(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(engine["ended"])

    signal.signal(signal.SIGTERM, end_well)
    text = printed(__file__, playbook.engine, playbook.numbers, {"host": host, "port": port})
    print(text, end="", file=sys.stderr, flush=True)
    print(engine["ready"], end="", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        end("interrupted", 128 + signal.SIGINT)


def trtllm(argv: Sequence[str]) -> None:
    """``trtllm-serve MODEL``, or ``trtllm-serve serve MODEL``."""
    # The subcommand is this one where none is named.
    words = argv[1:] if argv[:1] == ["serve"] else argv
    playbook, given = started("trtllm-serve serve", words, engine=True)
    options = llm_api.read_options(playbook, given)
    fraction = given.get("--kv_cache_free_gpu_memory_fraction", 0.9)
    written = options.get("kv_cache_config")
    if isinstance(written, dict) and playbook.numbers < (1, 3):
        fraction = written.get("free_gpu_memory_fraction", 0.9)  # it replaces the command line's
    world_size = given.get("--tp_size", 1) * given.get("--pp_size", 1)
    by_default = playbook.numbers >= _GRAPHS_SINCE
    said = llm_api.resolved(playbook, options, graphs_by_default=by_default)
    model = given.get("model", "")
    llm_api.engine_starts(model, world_size, fraction, said)
    routes = {"/version": {"version": playbook.version}}
    name = Path(model).resolve().name if Path(model).is_dir() else model
    _serve(playbook, given, name, routes)


def vllm(argv: Sequence[str]) -> None:
    """``vllm serve MODEL``."""
    playbook = here("vllm")
    announce("vllm serve")
    # The real parser reads an option with hyphens before it looks for it.
    words = [re.sub("^--[^=]+", lambda name: name[0].replace("_", "-"), word) for word in argv]
    if playbook.numbers >= _ALL_HELP_SINCE and words == ["--help"]:
        print("usage: vllm serve [model_tag] [options]\n\nUse `--help=all` to show all flags.")
        return
    if playbook.numbers >= _ALL_HELP_SINCE and "--help=all" in words:
        words = ["--help"]
    given = read(playbook, "vllm serve", words, engine=True)
    model = given.get("model_tag", "")
    values = option_values(__file__, "vllm-config", given)
    values |= {"model": model, "name": values["name"] or model, "version": playbook.version}
    values |= _vllm_config(playbook, given)
    values["config"] = config = printed(__file__, "vllm-config", playbook.numbers, values)
    print(printed(__file__, "vllm-starts", playbook.numbers, values), end="", flush=True)
    routes: dict[str, Any] = {"/version": {"version": playbook.version}}
    if os.environ.get("VLLM_SERVER_DEV_MODE") == "1":
        routes["/server_info"] = {"vllm_config": config, SYNTHETIC: True}
    _serve(playbook, given, values["name"], routes)


def _vllm_config(playbook: Playbook, given: GivenOptions) -> dict[str, Any]:
    """What the text of its configuration tells of choices that are partly its own."""

    def is_on(name: str, *, default: bool) -> bool:
        option = given.options.get(name)
        return option is not None and given.get(option.options[0], str(default)) == "True"

    eager, is_v1 = is_on("enforce_eager", default=False), playbook.numbers >= _V1_SINCE
    count = json.loads(given.get("--speculative-config", "{}")).get("num_speculative_tokens")
    drafting = f"SpeculativeConfig(method='deepseek_mtp', model=None, num_spec_tokens={count})"
    compilation = json.loads(given.get("--compilation-config", "{}"))
    level = 0 if eager else compilation.get("mode", compilation.get("level", 3))
    is_captured = not eager and compilation.get("cudagraph_mode") != "NONE"
    sizes = _graph_sizes(playbook, given) if is_captured else []
    return {
        "scheduling": "disabled" if given.all("--async-scheduling") == ("False",) else "enabled",
        "drafting": count and drafting,
        "eager": eager,
        "prefixes": is_on("enable_prefix_caching", default=is_v1),
        "chunks": is_on("enable_chunked_prefill", default=is_v1),
        "level": level,
        "mode": {0: "NONE: 0", 3: "VLLM_COMPILE: 3"}[level],
        "graphs": "FULL_AND_PIECEWISE: (2, 1)" if is_captured else "NONE: 0",
        "graphs_json": "[2,1]" if is_captured else "0",
        "sizes": sizes,
        "sizes_json": json.dumps(sizes, separators=(",", ":")),
    }


def _graph_sizes(playbook: Playbook, given: GivenOptions) -> list[int]:
    largest = given.get("--max-cudagraph-capture-size", _LARGEST_GRAPH)
    listed = given.all("--cudagraph-capture-sizes") or given.all("--cuda-graph-sizes")
    if len(listed) == 1 and playbook.numbers < _RENAMED_SINCE:
        largest, listed = int(listed[0]), ()
    return sorted(map(int, listed)) or [1, 2, 4, *range(8, largest + 1, 8)]


def sglang(argv: Sequence[str]) -> None:
    """``python3 -m sglang.launch_server``: it changes the settings that it is given."""
    playbook = here("sglang")
    announce("sglang.launch_server")
    given = read(playbook, "sglang.launch_server", argv, engine=True)
    settings = resolved(given, playbook.version, playbook.scenario_part.gpu)
    settings[SYNTHETIC] = True
    start = {
        **settings,
        "is_limited": settings["max_running_requests"] == 48,
        # Without a limit the scheduler takes one from the size of the KV cache.
        "admitted": settings["max_running_requests"] or 4096,
        "length": _MODEL_LENGTH,
    }
    print(printed(__file__, "sglang-starts", playbook.numbers, start), end="", flush=True)
    routes = {"/get_server_info": settings}
    if playbook.numbers >= _TWO_PATHS_SINCE:
        routes["/server_info"] = settings
    _serve(playbook, given, settings["served_model_name"], routes)
