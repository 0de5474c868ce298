"""Its grandchild has a session of its own, an empty environment and no living parent."""

import os
import signal
import sys

from roll import sign

if sys.argv[2:] == ["grandchild"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sign("grandchild")
    while True:
        signal.pause()

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        again = [sys.executable, *sys.argv[:2], "grandchild"]
        os.execve(sys.executable, again, {})  # noqa: S606
    os._exit(0)
os.wait()
sign("program")
signal.pause()
