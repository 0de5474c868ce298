"""End what an mpirun left on its hosts when perfgate is gone, and can no longer do so itself.

A program of its own, run by path (``python -I -S mpirun_keeper.py CALL``): standard library only,
imported by nobody. It runs under the wardens, which send SIGTERM when perfgate ends, in whatever
way; perfgate itself kills it, having cleared the hosts. mpirun gets SIGTERM at the same moment and
ends its ranks; what is left of them after that, since mpirun or a host's orted was killed too, or
since they would not end, ends here.

CALL is JSON: ``{"calls": [argv…], "after_s": seconds, "tries": number, "every_s": seconds}``. Every
call is tried until it has succeeded, so many times at most.
"""

import json
import signal
import subprocess
import sys
import time
from typing import Any

ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
CALL_S = 60.0


def main(call: dict[str, Any]) -> int:
    """Wait for perfgate's end, then make the calls; 0 if all have succeeded."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    print("keeps", flush=True)
    signal.sigwait(ENDING)
    time.sleep(call["after_s"])
    left = call["calls"]
    for _ in range(call["tries"]):
        left = failed(left)
        if not left:
            return 0
        time.sleep(call["every_s"])
    return 1


def failed(calls: list[list[str]]) -> list[list[str]]:
    """Make the calls at once; those that failed."""

    def ignore() -> None:  # the wardens send SIGTERM to what is started now, too
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)

    # Safe here: there is one thread only.
    begun = [
        (argv, subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=ignore))
        for argv in calls
    ]
    deadline = time.monotonic() + CALL_S
    again = []
    for argv, program in begun:
        try:
            if program.wait(max(0.1, deadline - time.monotonic())) == 0:
                continue
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        again.append(argv)
    return again


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
