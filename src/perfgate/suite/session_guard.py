"""Session guard: what happens to a session, or to its output, never looks like a verdict.

What escapes from pytest ends Python in status 1, which means a regression.
"""

import sys
import traceback
from collections.abc import Generator
from typing import TextIO, cast

import pytest

from perfgate.core.durable_files import cannot_write, is_unwritable
from perfgate.core.output_stream import OutputStream, standard_streams
from perfgate.judging.assembly.exit_status import ExitStatus, worst
from perfgate.suite.own_errors import is_ours
from perfgate.suite.plugin import SESSION

_ANOTHER_PLACE = "free space, or name another place where --junitxml, --benchmark-json … write to"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Give a session that fails, or whose output is lost, a status of its own."""
    if hasattr(config, "workerinput"):
        return (yield)
    try:
        with standard_streams() as streams:
            try:
                status = yield
            except pytest.UsageError as error:
                if not is_unwritable(error.__cause__):
                    raise
                streams.err.write(f"ERROR: {error}\n\n")
                status = ExitStatus.UNWRITABLE
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


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None]:
    """Sum the run up at last, also where pytest or a plugin fails to write a report of its own.

    Those who write one (JUnit, benchmarks) are inside of this wrapper, the terminal's summary is
    outside.
    """
    suite = session.config.stash[SESSION]
    lost: OSError | None = None
    try:
        yield
    except OSError as error:
        if suite.run is None or hasattr(session.config, "workerinput"):
            raise
        lost = error
    finally:
        suite.sum_up(session, exitstatus)
    if lost is not None:
        suite.lose_report(session, cannot_write(lost.filename, lost, _ANOTHER_PLACE))


def _status_after(error: Exception, ended: ExitStatus | None, stream: OutputStream) -> int:
    """The status of a session that ended in an error of perfgate, or of pytest or a plugin.

    Args:
        error: what escaped from pytest.
        ended: the status that the run had been summed up with, if it had been.
        stream: where the error is told.
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
