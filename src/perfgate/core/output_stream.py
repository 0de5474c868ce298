"""Output streams that cannot fail: standard output and standard error, whatever is behind them.

A reader that has seen enough (`| head`), a full disk and a closed stream raise an error wherever
something happens to be printed. Here they raise none: what cannot be written is dropped, and the
stream knows why. A character that its encoding lacks is written as Python's escape, ``\\xe9``.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO, TextIOWrapper
from typing import Any, TextIO, cast


class OutputStream:
    """A text stream that writes through to another, and drops what that does not take.

    Whatever it lacks of a text stream (`isatty`, `encoding`, …) is that of the other.

    Args:
        stream: the other; None where Python was started with it closed.
        number: its file descriptor, 1 or 2. Once something could not be written, it leads to
            nowhere: else what is still in its buffers would fail again at the end of Python.
    """

    def __init__(self, stream: TextIO | None, number: int) -> None:
        self.failure: OSError | None = None
        self._number = number
        self._is_closed = stream is None
        self._stream = stream or TextIOWrapper(FileIO(number, "w", closefd=False))
        self._errors = self._stream.errors
        self._reconfigure("backslashreplace")

    def write(self, text: str) -> int:
        """Write `text`, or drop it."""
        if not self._is_closed:
            self._try(lambda: self._stream.write(text))
        elif text:
            self.failure = OSError(errno.EBADF, "it is closed")
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, or drop it."""
        self._try(self._stream.flush)

    def problem(self) -> str:
        """Why it could not be written; empty if it could, or its reader left."""
        self.flush()
        return "" if self.failure is None else str(self.failure.strerror)

    def restore(self) -> None:
        """Let the other stream be as it was."""
        self.flush()
        self._reconfigure(self._errors)

    def _reconfigure(self, errors: str | None) -> None:
        stream = self._stream
        if isinstance(stream, TextIOWrapper):
            self._try(lambda: stream.reconfigure(errors=errors))  # which flushes it

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
            return
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reader has seen enough; that is no failure
        except OSError as error:
            self.failure = error
        _lead_nowhere(self._number)
        with suppress(OSError):
            self._stream.flush()


def occupy_standard_descriptors() -> None:
    """Let closed descriptors 0, 1 and 2 lead nowhere.

    Else the next file that is opened gets the number, and what a program prints ends up in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _lead_nowhere(number)


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, number)
    if nowhere != number:
        os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[tuple[OutputStream, OutputStream]]:
    """Standard output and standard error cannot fail while the block runs.

    One that was closed stays replaced: much code takes for granted that there is one.
    """
    occupy_standard_descriptors()
    before = sys.stdout, sys.stderr
    out, err = OutputStream(sys.stdout, 1), OutputStream(sys.stderr, 2)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out, err
    finally:
        out.restore()
        err.restore()
        sys.stdout, sys.stderr = before[0] or cast(TextIO, out), before[1] or cast(TextIO, err)
