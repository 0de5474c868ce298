"""The stand-in server at an address that it is told; by itself it knows the loopback device only.

hosted_server.py ADDRESS SCRIPT OPTION…
"""

import http.server
import runpy
import sys
from typing import Any

address = sys.argv[1]


class Hosted(http.server.ThreadingHTTPServer):
    def __init__(self, where: tuple[str, int], handler: Any) -> None:
        super().__init__((address, where[1]), handler)


http.server.ThreadingHTTPServer = Hosted  # type: ignore[misc]
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
