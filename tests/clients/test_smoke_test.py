"""The first answer of a server: there is one, it is whole, and it is what is known of it."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from perfgate.clients.smoke_test import ask, request_body
from perfgate.core.errors import RunError
from perfgate.engines.base import Endpoint
from perfgate.scenarios.scenario import Smoke

SMOKE = Smoke("completion", ("Where is New York?",), max_tokens=16)


def completion(text: str, tokens: int = 16, reason: str | None = "length") -> dict[str, Any]:
    """A completion as the recipe shows it, the fields that nobody reads left out."""
    return {
        "choices": [{"index": 0, "text": text, "finish_reason": reason}],
        "usage": {"prompt_tokens": 6, "total_tokens": 6 + tokens, "completion_tokens": tokens},
    }


Serve = Callable[[object, int], Endpoint]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that gives one answer to everything."""
    servers: list[HTTPServer] = []

    def start(answer: object, status: int = 200) -> Endpoint:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Endpoint("127.0.0.1", server.server_port, "some/model")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_answer_is_kept_and_counted(serve: Serve, tmp_path: Path) -> None:
    measured = ask(serve(completion(" / by Megan"), 200), SMOKE, tmp_path, 5)
    assert measured.metrics == {}
    assert measured.facts == {
        "answers": 1,
        "first_answer": " / by Megan",
        "answer_texts": {SMOKE.prompts[0]: " / by Megan"},
    }
    assert json.loads((tmp_path / "answers.json").read_text()) == {SMOKE.prompts[0]: " / by Megan"}


@pytest.mark.parametrize(
    ("answer", "status", "failure"),
    [
        (completion("  "), 200, "broken_output"),
        (completion("!!!!!!!!"), 200, "broken_output"),
        (completion(" Paris", 1, "stop"), 200, "broken_output"),
        (completion(" / by Megan", 7), 200, "incomplete"),
        (completion(" / by Megan", 16, None), 200, "incomplete"),
        ({"choices": [{"text": " / by Megan", "finish_reason": "stop"}]}, 200, "no_metrics"),
        ({**completion(" / by Megan"), "usage": {"completion_tokens": 16}}, 200, "no_metrics"),
        (completion(7, 16), 200, "no_metrics"),  # type: ignore[arg-type]
        (completion("a long answer", 17), 200, "incomplete"),
        ({"error": "no"}, 200, "no_metrics"),
        ({"choices": []}, 200, "no_metrics"),
        (b"<html>", 200, "no_metrics"),
        ({"error": "overloaded"}, 503, "client_failed"),
    ],
)
def test_anything_else_is_an_error(
    serve: Serve, tmp_path: Path, answer: object, status: int, failure: str
) -> None:
    error = refused(ask, serve(answer, status), SMOKE, tmp_path, 5, error=RunError)
    assert error.failure == failure


def test_a_broken_answer_is_kept_to_be_looked_at(serve: Serve, tmp_path: Path) -> None:
    broken, told = serve(completion("!!!!!!!!"), 200), "repeats one character"
    refused(ask, broken, SMOKE, tmp_path, 5, error=RunError, match=told)
    assert json.loads((tmp_path / "answers.json").read_text()) == {SMOKE.prompts[0]: "!!!!!!!!"}


def test_no_server_is_an_error(tmp_path: Path) -> None:
    nobody = Endpoint("127.0.0.1", 9, "m")
    assert refused(ask, nobody, SMOKE, tmp_path, 5, error=RunError).failure == "client_failed"


def test_the_request_is_the_documented_one() -> None:
    assert request_body(SMOKE, SMOKE.prompts[0], "deepseek-ai/DeepSeek-R1-0528") == {
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "prompt": "Where is New York?",
        "max_tokens": 16,
        "temperature": 0,
    }
