"""A mock program for trtllm-serve: answers like its OpenAI-compatible server; synthetic answers."""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import inject_engine_fault
from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.json_server import JsonHandler, JsonServer
from perfgate.rehearsal.llm_api_yaml import read_options
from perfgate.rehearsal.options import GivenOptions, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, end

_PROGRAM = "trtllm-serve serve"
_ANSWER = (
    " New York is a state in the northeastern United States. It is bordered by New Jersey and"
    " Pennsylvania to the south, Connecticut, Massachusetts and Vermont to the east."
)
_GRAPHS_SINCE = (1, 0)  # captured by default (#5480)
_MOST_TOKENS = 16  # where the request names none, as in OpenAI's API


class Server(JsonServer):
    """The server; knows the model's name and the playbook."""

    def __init__(
        self,
        address: tuple[str, int],
        model: str,
        playbook: Playbook,
        handler: type[JsonHandler] | None = None,
    ) -> None:
        self.model = model
        self.playbook = playbook
        super().__init__(address, handler or Handler)


class Handler(JsonHandler):
    """The routes that perfgate and the clients use."""

    server: Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        if self.path in ("/health", "/health_generate"):
            self.answer(200, b"")
        elif self.path == "/version":
            self.answer_json(200, {"version": self.server.playbook.version})
        elif self.path == "/v1/models":
            self.answer_models(self.server.model, "perfgate rehearsal: a mock program")
        else:
            self.answer_json(404, {"detail": "Not Found"})

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
            self.answer_json(400, _error(self.too_long()))
        else:
            self.answer_json(200, _completion(asked, self.server.playbook, chat=chat))

    def too_long(self) -> str:
        """What is answered to a prompt that is too long; the log is told, too."""
        told = FAULTS["request_too_long"].written(self.server.playbook.numbers)
        print(told, file=sys.stderr)
        return told.strip().rpartition("RequestError: ")[2]

    def log_message(self, format: str, *words: object) -> None:  # noqa: ARG002
        """One line a request, as uvicorn writes it."""
        host, port = self.client_address[:2]
        status = words[1] if len(words) > 1 else ""
        print(f'INFO:     {host}:{port} - "{self.requestline}" {status}', flush=True)


def _error(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "code": 400}


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
    choices: list[dict[str, Any]] = []
    for index in range(count):
        said: dict[str, Any] = {"text": answer}
        if chat:
            said = {"message": {"role": "assistant", "content": answer}}
        choices.append({"index": index, **said, "finish_reason": reason, "stop_reason": None})
    return {
        "id": "cmpl-rehearsal",
        "object": "chat.completion" if chat else "text_completion",
        "created": 0,
        "model": asked["model"],
        "choices": choices,
        "usage": {
            "prompt_tokens": 6 * count,
            "total_tokens": 6 * count + tokens,
            "completion_tokens": tokens,
        },
        SYNTHETIC: True,
    }


def served_name(model: str) -> str:
    """The name under which the server lists its model: of a folder, its last part."""
    path = Path(model)
    return path.resolve().name if path.is_dir() else model


def main(argv: Sequence[str]) -> None:
    """Read the command line and serve until a signal comes."""
    words = list(argv)
    if words[:1] == ["serve"]:  # the subcommand is this one where none is named
        words = words[1:]
    playbook, given = started(_PROGRAM, words, argparse=False, engine=True)
    _serve(playbook, given, given.words[0])


def _serve(playbook: Playbook, given: GivenOptions, model: str) -> None:
    host, port = given.text("--host", "localhost"), given.integer("--port", 8000)
    options = read_options(playbook, given)
    fraction = given.number("--kv_cache_free_gpu_memory_fraction", 0.9)
    written = options.get("kv_cache_config")
    if isinstance(written, dict) and playbook.numbers < (1, 3):
        fraction = written.get("free_gpu_memory_fraction", 0.9)  # it replaces the command line's
    world_size = given.integer("--tp_size", 1) * given.integer("--pp_size", 1)
    by_default = playbook.numbers >= _GRAPHS_SINCE
    said = healthy.resolved(playbook, options, graphs_by_default=by_default)
    healthy.engine_starts(model, world_size, fraction, said)
    inject_engine_fault(playbook, host, str(port))
    try:
        server = Server((host, port), served_name(model), playbook)
    except OSError:
        told = FAULTS["port_in_use"].written(playbook.numbers, host, str(port))
        print(told, end="", file=sys.stderr)
        raise SystemExit(1) from None
    signal.signal(signal.SIGTERM, _ended)
    for line in (
        "Started server process [4711]",
        "Waiting for application startup.",
        "Application startup complete.",
        f"Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)",
    ):
        print(f"INFO:     {line}", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        end("interrupted", 128 + signal.SIGINT)


def _ended(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
