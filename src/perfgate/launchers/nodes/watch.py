"""Watch this node while load is measured on it: a program that is run on each node of a start.

``python -m perfgate.launchers.nodes.watch MARK GPUS`` says when its first look is over, watches
until SIGTERM or until what started it is gone, and then tells what it saw as one line of JSON. Ours
are the processes with the mark in PERFGATE_PLACE.
"""

import json
import os
import signal
import sys
from contextlib import suppress

from perfgate.machine.conditions.processes import Marked
from perfgate.machine.conditions.watch import watched

PLACE = "PERFGATE_PLACE"
WATCHES = "watches"
ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
PARENT_S = 1.0  # between two looks whether the parent lives


def main(mark: str, gpus: int) -> None:
    """Watch as many GPUs, and the CPU; the watch's thread must not get the signals either."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    parent = os.getppid()
    with suppress(BrokenPipeError), watched(gpus, marked=Marked(PLACE, mark)) as watch:
        print(WATCHES, flush=True)
        while signal.sigtimedwait(ENDING, PARENT_S) is None and os.getppid() == parent:
            pass
    with suppress(BrokenPipeError):
        print(json.dumps(watch.conditions.plain()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
