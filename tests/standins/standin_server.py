"""A stand-in for an engine's server: no model, made-up speed. For tests of the harness alone.

The server is that of the rehearsal's stand-ins; what it answers is not marked as synthetic, so that
the harness takes it for an engine's.

Its speed is 100 tokens/s a thread, a little different at every start, so that the gate sees noise.
PERFGATE_STANDIN_FAULT puts in a fault: never-ready, die-at-start, die-on-load, die-after-load,
wrong-model, short-answers, as-the-scenario (the one that the scenario is named after).
PERFGATE_STANDIN_SAYS is a file whose content it writes into its log first.
"""

import argparse
import json
import math
import os
import sys
import threading
import time
from pathlib import Path

from perfgate.rehearsal.programs.http_json import JsonHandler, JsonServer

parser = argparse.ArgumentParser()
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--threads", type=int, required=True)
arguments, _ = parser.parse_known_args()
fault = os.environ.get("PERFGATE_STANDIN_FAULT", "")
if fault == "as-the-scenario":
    fault = os.environ["PERFGATE_SCENARIO"]

counter = Path(os.environ["PERFGATE_STANDIN_COUNTER"])
start = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(start))
speed = 100.0 * arguments.threads * (1 + 0.01 * math.sin(7.0 * start))

if says := os.environ.get("PERFGATE_STANDIN_SAYS"):
    sys.stderr.buffer.write(Path(says).read_bytes())
    sys.stderr.flush()

if fault in ("die-at-start", f"die-at-start:{os.environ['PERFGATE_ROLE']}"):
    if not says:
        print("error loading model: made-up", file=sys.stderr)
    sys.exit(3)


loaded = threading.Event()


class Handler(JsonHandler):
    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        if self.path == "/health":
            if fault == "die-after-load" and loaded.is_set():
                os._exit(5)
            self.answer(503 if fault == "never-ready" else 200, b"")
        elif self.path == "/v1/models":
            name = "another-model" if fault == "wrong-model" else arguments.model
            self.answer_models(name, "tests")
        elif self.path == "/speed":
            if fault == "die-on-load":
                os._exit(5)
            work()
            self.answer_json(200, {"speed": speed})
            loaded.set()

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if self.path == "/v1/completions":
            tokens = int(asked.get("max_tokens", 1))
            if tokens > 1:  # a block of load
                if fault == "die-on-load":
                    os._exit(5)
                work()
                time.sleep(tokens / speed)
                tokens -= fault == "short-answers"
            usage = {"completion_tokens": tokens}
            self.answer_json(200, {"choices": [{"text": " 2"}], "usage": usage})

    def log_message(self, *words: object) -> None:
        pass


def work() -> None:
    """Use some CPU under load, as a server would: a few of the ticks of 10 ms that are counted."""
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass


print(f"stand-in serving {arguments.model} at {speed:.2f} tokens/s", flush=True)
JsonServer((arguments.host, arguments.port), Handler).serve_forever()
