"""Errors of a person's input end a pytest session with its status for wrong usage."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perfgate.core.errors import PerfgateError


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors raised on purpose into pytest's own, which needs no traceback."""
    try:
        yield
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
