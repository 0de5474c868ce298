"""Forks itself anew whenever it is told to end, twenty times; the last one does not listen."""

import os
import signal

from roll import sign

LIVES = 20


def live(life: int) -> None:
    def rise(*_: object) -> None:
        # Told again before it has its own handler, the new one would live this life once more.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        if life < LIVES and os.fork() == 0:
            live(life + 1)
        elif life < LIVES:
            os._exit(0)

    signal.signal(signal.SIGTERM, rise)
    sign("program" if life == 0 else f"life {life}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    while True:
        signal.pause()


live(0)
