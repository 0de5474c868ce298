"""Keep the vboost slider: a process of its own that sets it, waits, and puts back what was there.

Run by ``python -m perfgate.machine.vboost.keeper REQUEST``, where REQUEST is JSON: ``level``, and
``before``, the GPU's number → the level that was there. It answers with one JSON line when the
slider is set and one when it is put back: ``{"error": null}``, or what went wrong.

It puts back when its standard input ends: because whoever asked has closed it, or is gone, in
whatever way. Signals that would end it are ignored, so that no nvidia-smi is left half-way.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from perfgate.core.errors import PerfgateError, as_run_error
from perfgate.machine.vboost.slider import NotPermitted, put_back, set_all

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(request: str) -> None:
    """Set the slider, wait for the end of the standard input, put back."""
    for one in _ENDING:
        signal.signal(one, signal.SIG_IGN)
    asked = json.loads(request)
    before = asked["before"]
    _answer(lambda: set_all(asked["level"], list(before)))
    sys.stdin.read()
    _answer(lambda: put_back(before))


def _answer(act: Callable[[], None]) -> None:
    """Do it, and tell how it went; on the error stream where nobody is left to read."""
    failure = None
    try:
        act()
    except PerfgateError as error:
        met = as_run_error(error)
        failure = {
            "class": met.failure,
            "message": met.message,
            "evidence": met.evidence,
            "hint": met.hint,
            "permitted": not isinstance(error, NotPermitted),
        }
    try:
        os.write(1, json.dumps({"error": failure}).encode() + b"\n")
    except BrokenPipeError:
        if failure:
            with suppress(OSError):
                print(f"vboost: {failure['message']}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
