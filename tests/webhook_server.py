"""A receiver of webhooks on this machine, for tests; what it does with a post is set by each."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "T0000000/B0000000/abcdefghijklmnop"  # pragma: allowlist secret
PATH = f"/services/{TOKEN}"
Act = Callable[[BaseHTTPRequestHandler], None]


class WebhookServer:
    """The server.

    Attributes:
        got: path and body of each post.
        act: what it answers.
        end: set when the test is over, so that no answer is waited for any longer.
        url: its address.
    """

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.act: Act = answer(200, "ok")
        self.end = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.path, json.loads(body)))
                outer.act(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{PATH}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """End it."""
        self.end.set()
        self._server.shutdown()
        self._server.server_close()


def answer(status: int, text: str = "", **headers: str) -> Act:
    """An answer with a body and further headers."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    return act
