"""Runs until it is told to end, and ends with status 0 then."""

import signal
import sys

from roll import sign

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
sign("program")
while True:
    signal.pause()
