"""HTTP of mock programs: a server that answers in JSON, and a client's few requests.

Imports nothing but the standard library: a mock program is started often. Knows no engine.
"""

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 5.0


class JsonServer(ThreadingHTTPServer):
    """A server that a mock program is; it is there at once."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without the look-up of the host's full name, which can take seconds."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


class JsonHandler(BaseHTTPRequestHandler):
    """What the routes of a mock program answer with."""

    protocol_version = "HTTP/1.1"

    def answer_json(self, status: int, content: Mapping[str, object]) -> None:
        """Answer with a JSON object."""
        self.answer(status, json.dumps(content).encode())

    def answer(self, status: int, body: bytes) -> None:
        """Answer with `body`, which may be empty."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_models(self, name: str, owner: str) -> None:
        """Answer as ``/v1/models`` of an OpenAI-compatible server that serves one model."""
        model = {"id": name, "object": "model", "created": 0, "owned_by": owner}
        self.answer_json(200, {"object": "list", "data": [model]})


def complete(url: str, model: str) -> str | None:
    """Ask for one short answer; None: it came, else what was said or went wrong instead."""
    prompt: dict[str, Any] = {"prompt": "Hello"}
    if url.endswith("/chat/completions"):
        prompt = {"messages": [{"role": "user", "content": "Hello"}]}
    body = json.dumps({"model": model, **prompt, "max_tokens": 8, "temperature": 0.0})
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=_TIMEOUT_S)
    try:
        with closing(connection):
            connection.request("POST", place.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = json.loads(answer.read() or "{}")
    except OSError as error:
        at = f"('{place.hostname}', {place.port})"
        where = f"{place.netloc} ssl:default [Connect call failed {at}]"
        return f"Cannot connect to host {where}: {error}"
    return None if answer.status == 200 else f"{answer.reason}: {said.get('message', '')}"
