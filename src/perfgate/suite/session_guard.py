"""Session guard: what happens to a session, or to its output, never looks like a verdict.

What escapes from pytest ends Python in status 1, which means a regression.
"""

import sys
import traceback
from collections.abc import Generator
from typing import TextIO, cast

import pytest

from perfgate.core.output_stream import OutputStream, standard_streams
from perfgate.suite.own_errors import is_ours
from perfgate.suite.plugin import SESSION
from perfgate.verdicts.exit_status import ExitStatus


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Give a session that fails, or whose output is lost, a status of its own."""
    if hasattr(config, "workerinput"):
        return (yield)
    try:
        with standard_streams() as streams:
            try:
                status = yield
            except pytest.UsageError:
                raise
            except Exception as error:
                status = _status_after(error, config.stash[SESSION].status, streams.err)
            if failure := streams.failure():
                streams.err.write(f"perfgate: standard output cannot be written: {failure}\n")
                if status in (ExitStatus.PASSED, ExitStatus.REHEARSED):
                    status = ExitStatus.UNWRITABLE
    except pytest.UsageError:
        sys.stderr = cast(TextIO, streams.err)  # where pytest tells it
        raise
    return status


def _status_after(error: Exception, ended: ExitStatus | None, stream: OutputStream) -> int:
    """The status of a session that ended in an error of perfgate, or of pytest or a plugin.

    Args:
        error: what escaped from pytest.
        ended: the status that the run had been summed up with, if it had been.
        stream: where the error is told.
    """
    outermost = error.__traceback__  # of the hook that it was caught in, which is perfgate's
    error = error.with_traceback(outermost and outermost.tb_next)
    whose = "perfgate: internal error" if is_ours(error) else "perfgate: pytest or a plugin failed"
    stream.write(f"{whose}: {type(error).__name__}: {error}; the traceback follows\n")
    stream.write("".join(traceback.format_exception(error)))
    if ended == ExitStatus.REGRESSION:
        return ended
    return ExitStatus.INTERNAL_ERROR if is_ours(error) else pytest.ExitCode.INTERNAL_ERROR
