"""A mock program for `python3 -m sglang.launch_server`: answers like it; synthetic answers.

It changes the settings that it is given as the real one does (`sglang_settings`), and tells them.
"""

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from perfgate.rehearsal.argparse_options import given as given_options
from perfgate.rehearsal.fault_injection import inject_engine_fault
from perfgate.rehearsal.faults import FAULTS
from perfgate.rehearsal.options import GivenOptions, played
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, crash, end, here
from perfgate.rehearsal.sglang_settings import RefusedSettings, numbers, resolved
from perfgate.rehearsal.trtllm_serve import Handler as CompletionHandler
from perfgate.rehearsal.trtllm_serve import Server as CompletionServer

_PROGRAM = "sglang.launch_server"
_MODEL_LENGTH = 163840  # of DeepSeek-R1
_ONE_PATH_UNTIL = (0, 5, 22)  # from 0.5.23 on /server_info is the name, and the other is deprecated


class Server(CompletionServer):
    """The server; knows its resolved settings, too."""

    def __init__(
        self, address: tuple[str, int], settings: dict[str, Any], playbook: Playbook
    ) -> None:
        self.settings = settings
        super().__init__(address, str(settings["served_model_name"]), playbook, Handler)


class Handler(CompletionHandler):
    """The routes that perfgate and the clients use."""

    server: Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        settings = self.server.settings
        paths = ["/get_server_info"]
        if numbers(self.server.playbook.version) > _ONE_PATH_UNTIL:
            paths.append("/server_info")
        if self.path in paths:
            self.answer_json(200, settings)
        elif self.path == "/get_model_info":
            path = settings["model_path"]
            self.answer_json(200, {"model_path": path, "tokenizer_path": path})
        elif self.path == "/v1/models":
            self.answer_models(self.server.model, "sglang")
        elif self.path == "/version":
            self.answer_json(404, {"detail": "Not Found"})
        else:
            super().do_GET()

    def too_long(self) -> str:
        """What is answered to a prompt that is too long; its log tells only the status."""
        return (
            "Requested token count exceeds the model's maximum context length of "
            f"{_MODEL_LENGTH} tokens. You requested a total of 170000 tokens."
        )


def main(argv: Sequence[str]) -> None:
    """Read the command line, resolve it, and serve until a signal comes."""
    playbook = here("sglang")
    announce(_PROGRAM)
    given = given_options(played(playbook, _PROGRAM, engine=True), argv)
    host, port = given.text("--host", "127.0.0.1"), given.integer("--port", 30000)
    try:
        settings = resolved(given, playbook.version, playbook.scenario_part.gpu)
    except RefusedSettings as error:
        crash(f"AssertionError: {error}")
    settings[SYNTHETIC] = True
    _start(playbook, given, settings)
    inject_engine_fault(playbook, host, str(port))
    _serve(playbook, (host, port), settings)


def _start(playbook: Playbook, given: GivenOptions, settings: dict[str, Any]) -> None:
    """What it logs until it is ready, some of it with words that sound worse than they are."""
    print(f"server_args=ServerArgs(model_path='{given.text('--model-path')}', ...)")
    if settings["max_running_requests"] == 48 and numbers(playbook.version) >= (0, 5, 5):
        print(
            "Max running requests is reset to 48 for speculative decoding. You can override this "
            "by explicitly setting --max-running-requests."
        )
    print("Ignore import error when loading sglang.srt.models.falcon_mamba")
    told = ", ".join(
        f"{name}={settings[name]}"
        for name in ("max_total_num_tokens", "chunked_prefill_size", "max_prefill_tokens")
    )
    # Without a limit the scheduler takes one from the size of the KV cache.
    admitted = settings["max_running_requests"] or 4096
    print(f"{told}, max_running_requests={admitted}, context_len={_MODEL_LENGTH}", flush=True)


def _serve(playbook: Playbook, address: tuple[str, int], settings: dict[str, Any]) -> None:
    host, port = address
    try:
        server = Server(address, settings, playbook)
    except OSError:
        told = FAULTS["port_in_use"].written(playbook.numbers, host, str(port), playbook.engine)
        print(told, end="", file=sys.stderr)
        raise SystemExit(3) from None
    signal.signal(signal.SIGTERM, _ended)
    for line in ("Started server process [4711]", f"Uvicorn running on http://{host}:{port}"):
        print(f"INFO:     {line}", file=sys.stderr, flush=True)
    print("The server is fired up and ready to roll!", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        end("interrupted", 128 + signal.SIGINT)


def _ended(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)  # as the real one ends
