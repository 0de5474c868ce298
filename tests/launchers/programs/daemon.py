"""Starts a daemon the classical way (fork, setsid, fork) and ends, or stays with `--stay`."""

import os
import signal
import sys

from roll import folder, sign

if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    os.chdir("/")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sign("daemon")
    while True:
        signal.pause()
os.wait()
sign("program")
while not (folder() / "daemon").exists():
    pass
if "--stay" in sys.argv:
    signal.pause()
