"""Own errors: which errors of a session are bugs of perfgate, not of the machine or a plugin."""

import traceback
from pathlib import Path

import pytest

import perfgate
from perfgate.core.errors import PerfgateError

_PACKAGE = Path(perfgate.__file__).parent


def is_ours(error: BaseException) -> bool:
    """Whether `error` is a bug of perfgate: it came through its code, and was not meant for people.

    An end of the test that was asked for (`pytest.fail`, `pytest.skip`, a time limit) is none.
    """
    if isinstance(error, PerfgateError | pytest.fail.Exception | pytest.skip.Exception):
        return False
    if not isinstance(error, Exception):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return any(Path(frame.filename).is_relative_to(_PACKAGE) for frame in frames)
