"""The HTTP server of mock programs: answers in JSON, and is there at once. Knows no engine.

Imports nothing but the standard library: a mock program is started often.
"""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class JsonServer(ThreadingHTTPServer):
    """A server that a mock program is."""

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
