"""Errors of a person's input end a pytest session with its status for wrong usage.

So does what cannot be written, but `suite.session_guard` gives that a status of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perfgate.core.durable_files import cannot_write, is_unwritable
from perfgate.core.errors import PerfgateError


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors raised on purpose into pytest's own, which needs no traceback."""
    try:
        yield
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
    except OSError as error:
        if not is_unwritable(error):
            raise
        told = cannot_write(error.filename, error)
        raise pytest.UsageError(str(told)) from told
