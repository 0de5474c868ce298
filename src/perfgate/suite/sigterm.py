"""SIGTERM ends a session as Ctrl-C does: torn down, summed up, status 2."""

import signal
import threading
from types import FrameType

import pytest


def end_on_sigterm(config: pytest.Config) -> None:
    """Let SIGTERM end this process so, unless somebody else listens to it; put back at the end."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    def restore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, interrupt)
        config.add_cleanup(restore)
