"""Own errors: which errors of a session are bugs of perfgate, not of the machine or a plugin."""

import traceback
from pathlib import Path

import pluggy
import pytest

import perfgate
from perfgate.core.durable_files import is_unwritable
from perfgate.core.errors import PerfgateError

_PACKAGE = Path(perfgate.__file__).parent
_HOOKS = Path(pluggy.__file__).parent


def is_ours(error: BaseException) -> bool:
    """Whether `error` is a bug of perfgate: it came out of its code, and was not meant for people.

    What another plugin raised is none, though it went through a hook that perfgate wraps; nor is an
    end of the test that was asked for (`pytest.fail`, `pytest.skip`, a time limit), nor a disk that
    is full or read-only.
    """
    if isinstance(error, PerfgateError | pytest.fail.Exception | pytest.skip.Exception):
        return False
    if not isinstance(error, Exception) or is_unwritable(error):
        return False
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    hooks = [place for place, file in enumerate(files) if file.is_relative_to(_HOOKS)]
    raised_in = files[hooks[-1] + 1 :] if hooks else files
    return any(file.is_relative_to(_PACKAGE) for file in raised_in)
