"""Session guard: an error or a signal in a session never looks like a verdict.

An error that escapes from pytest ends Python in status 1, which means a regression.
"""

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO, cast

import pluggy
import pytest

import perfgate
from perfgate.core.errors import PerfgateError
from perfgate.core.files.durable_files import cannot_write, is_unwritable
from perfgate.core.output_stream import OutputStream, standard_streams
from perfgate.runs.exit_status import ExitStatus, worst

_PACKAGE = Path(perfgate.__file__).parent
_HOOKS = Path(pluggy.__file__).parent


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors that perfgate raises for people into pytest's own, which needs no traceback.

    So end errors of input and files that cannot be written; `guarded` gives the latter a status of
    their own.
    """
    try:
        yield
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
    except OSError as error:
        if not is_unwritable(error):
            raise
        unwritable = cannot_write(error.filename, error)
        raise pytest.UsageError(str(unwritable)) from unwritable


def is_ours(error: BaseException) -> bool:
    """Whether `error` is a bug of perfgate: it came out of its code, and was not meant for people.

    An error of another plugin is none, though it went through a hook that perfgate wraps; nor is a
    requested end of the test (`pytest.fail`, `pytest.skip`, a time limit), nor a disk that is full
    or read-only.
    """
    # What pytest ends a test with (`pytest.fail`, …) is no Exception.
    if not isinstance(error, Exception) or isinstance(error, PerfgateError) or is_unwritable(error):
        return False
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    hooks = [place for place, file in enumerate(files) if file.is_relative_to(_HOOKS)]
    raised_in = files[hooks[-1] + 1 :] if hooks else files
    return any(file.is_relative_to(_PACKAGE) for file in raised_in)


def end_on_sigterm(config: pytest.Config) -> None:
    """Let SIGTERM end this process as Ctrl-C does, unless somebody else listens to it.

    The session is torn down and summed up, with status 2. The handler is put back at its end.
    """

    def restore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
        config.add_cleanup(restore)


def finish_despite_sigterm() -> None:
    """Ignore SIGTERM from now on: this process ends its session anyway."""
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGTERM, _ignore)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    finish_despite_sigterm()
    if not isinstance(sys.exception(), KeyboardInterrupt):  # Ctrl-C, which a CI runner sends first
        raise KeyboardInterrupt(f"signal {number}")


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Unlike SIG_IGN not inherited by the programs that clean up."""


def guarded(ended: Callable[[], ExitStatus | None]) -> Generator[None, object, object]:
    """Give a session that fails, or whose output is lost, a status of its own.

    Around pytest's main loop, in the main process.

    Args:
        ended: the status that the run was summed up with; None: it was not.
    """
    try:
        with standard_streams() as (out, err):
            try:
                status = yield
            except pytest.UsageError as error:
                if not is_unwritable(error.__cause__):
                    raise
                err.write(f"ERROR: {error}\n\n")
                status = ExitStatus.UNWRITABLE
            except Exception as error:
                status = _status_after(error, ended(), err)
            if problem := out.problem():
                err.write(f"perfgate: standard output cannot be written: {problem}\n")
                if status in (ExitStatus.PASSED, ExitStatus.REHEARSED):
                    status = ExitStatus.UNWRITABLE
    except pytest.UsageError:
        sys.stderr = cast(TextIO, err)  # where pytest tells it
        raise
    return status


def _status_after(error: Exception, ended: ExitStatus | None, stream: OutputStream) -> int:
    """The status of a session that ended in an error of perfgate, or of pytest or a plugin.

    Args:
        error: what escaped from pytest.
        ended: the status that the run had been summed up with, if it had been.
        stream: where the error is reported.
    """
    outermost = error.__traceback__  # of the hook that it was caught in, which is perfgate's
    error = error.with_traceback(outermost and outermost.tb_next)
    if isinstance(error, OSError) and is_unwritable(error):
        stream.write(f"perfgate: {cannot_write(error.filename, error)}\n")
        return worst([ended or ExitStatus.UNWRITABLE, ExitStatus.UNWRITABLE])
    whose = "perfgate: internal error" if is_ours(error) else "perfgate: pytest or a plugin failed"
    stream.write(f"{whose}: {type(error).__name__}: {error}; the traceback follows\n")
    stream.write("".join(traceback.format_exception(error)))
    if ended == ExitStatus.REGRESSION:
        return ended
    return ExitStatus.INTERNAL_ERROR if is_ours(error) else pytest.ExitCode.INTERNAL_ERROR
