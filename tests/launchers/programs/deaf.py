"""Ignores what it is told; a child of it does, too."""

import os
import signal

from roll import sign


def hear(number: int, frame: object) -> None:
    os.write(1, f"heard {signal.Signals(number).name}\n".encode())


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, hear)
sign("child" if os.fork() == 0 else "program")
while True:
    signal.pause()
