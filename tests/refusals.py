"""What a call is refused with."""

from typing import Any

import pytest

from perfgate.core.errors import InputError


def refused(
    act: Any, *arguments: Any, match: str = "", error: type[Exception] = InputError, **named: Any
) -> Any:
    """The error of a call."""
    with pytest.raises(error, match=match or None) as caught:
        act(*arguments, **named)
    return caught.value
