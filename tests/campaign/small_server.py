"""A server in a few lines of Python: it is healthy, names its model, and completes every prompt."""

import json
import sys

from perfgate.core.programs.command import Command

_CODE = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
told = json.loads(sys.argv[1])
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"data": [{"id": told["model"]}]}, told["status"])
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(told["hangs_s"])
        self.answer({"choices": told["choices"]}, 200)
    def answer(self, plain, status):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(plain).encode())
HTTPServer(("127.0.0.1", told["port"]), Answer).serve_forever()
"""


def small_server(port: int, **changes: object) -> Command:
    """A command that serves model `m`; `changes` are of what it answers."""
    healthy = {"model": "m", "status": 200, "choices": [{"text": "2"}], "hangs_s": 0}
    told = json.dumps({**healthy, "port": port, **changes})
    return Command((sys.executable, "-c", _CODE, told))
