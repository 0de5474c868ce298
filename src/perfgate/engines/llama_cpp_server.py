"""Serve one GGUF model with llama.cpp's own HTTP server, from the `xllamacpp` wheel.

A program of its own, run by path with the interpreter that has `xllamacpp`; it imports nothing of
perfgate, so that the engine can live in an environment where perfgate is not installed.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_TURN_S = 0.01
# GGML_TYPE_* numbers of ggml.h, which the binding takes as they are.
CACHE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8}


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line.

    Raises:
        SystemExit: it is not complete.
    """
    parser = argparse.ArgumentParser(description="Serve one GGUF model with llama.cpp.")
    parser.add_argument("--version", action="store_true", help="print the engine's version and end")
    parser.add_argument("--model", type=Path, help="the GGUF file")
    parser.add_argument("--alias", help="the model name that /v1/models answers")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    parser.add_argument("--threads", type=int, help="compute threads, for prompts and for decoding")
    parser.add_argument("--slots", type=int, help="requests decoded together")
    parser.add_argument("--context", type=int, help="tokens of context over all slots")
    parser.add_argument("--batch", type=int, help="prompt tokens scheduled together")
    parser.add_argument("--cache-type", choices=sorted(CACHE_TYPES), help="KV cache dtype")
    parser.add_argument(
        "--poll", type=int, default=0, help="busy-waiting of idle threads, 0 to 100"
    )
    parser.add_argument("--slowed", type=int, default=0, help="percent of its own time to halt too")
    arguments = parser.parse_args(argv)
    if not arguments.version and not (arguments.model and arguments.port):
        parser.error("--model and --port are required")
    return arguments


def parameters(arguments: argparse.Namespace, params: Any) -> Any:
    """`params`, an `xllamacpp.CommonParams` with its defaults, set as the arguments say."""
    params.model.path = str(arguments.model)
    params.hostnames = [arguments.host]
    params.port = arguments.port
    params.ui = False
    params.cache_ram_mib = 0
    params.cache_prompt = False  # a sweep must not be served from the point before
    if arguments.alias:
        params.model_alias = {arguments.alias}
    for cpu in (params.cpuparams, params.cpuparams_batch):
        # Polling threads would count as work in the CPU time that is measured.
        cpu.poll = arguments.poll
        if arguments.threads:
            cpu.n_threads = arguments.threads
    if arguments.slots:
        params.n_parallel = arguments.slots
    if arguments.context:
        params.n_ctx = arguments.context
    if arguments.batch:
        params.n_batch = arguments.batch
        params.n_ubatch = min(arguments.batch, params.n_ubatch)
    if arguments.cache_type:
        params.cache_type_k = params.cache_type_v = CACHE_TYPES[arguments.cache_type]
    return params


def slow_down(percent: int) -> None:
    """Let a child halt this process for `percent` of the time that it lets it run.

    A turn is shorter than a token takes, so that every token is later by about that share. The
    child ends with this process, whoever ends it, and never leaves it halted.
    """
    server = os.getpid()
    if os.fork():
        return
    halted = _TURN_S * percent / 100
    try:
        while os.getppid() == server:
            time.sleep(_TURN_S)
            os.kill(server, signal.SIGSTOP)
            time.sleep(halted)
            os.kill(server, signal.SIGCONT)
    finally:
        os._exit(0)


def main() -> int:
    arguments = parse_arguments()
    if not arguments.version and not arguments.model.is_file():
        print(f"error: failed to load model: no file {arguments.model}", file=sys.stderr)
        return 1
    import xllamacpp  # here, so that the arguments can be read and tested without it

    if arguments.version:
        print(f"xllamacpp {xllamacpp.__version__}")
        return 0
    if arguments.slowed:
        slow_down(arguments.slowed)
    # Of a process that was halted any thread takes a signal: only the main one waits for these.
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    server = xllamacpp.Server(parameters(arguments, xllamacpp.CommonParams()))
    print(f"serving {server.listening_address}", flush=True)
    signal.sigwait(ending)
    return 0


if __name__ == "__main__":
    sys.exit(main())
