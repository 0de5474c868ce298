"""Own errors: a bug of perfgate is told from all else that ends a test."""

import json
from collections.abc import Callable, Iterator

import pytest

from perfgate.core.errors import InputError
from perfgate.suite.options import joined
from perfgate.suite.own_errors import is_ours


def raised(action: Callable[[], object]) -> BaseException:
    try:
        action()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def in_perfgate(error: BaseException) -> BaseException:
    """An error that comes through perfgate's code."""

    def words() -> Iterator[str]:
        raise error
        yield ""

    return raised(lambda: joined(words()))  # type: ignore[arg-type]


def test_an_error_that_came_through_its_code_is_one() -> None:
    assert is_ours(in_perfgate(TypeError()))


@pytest.mark.parametrize(
    "error",
    [
        InputError("a file is wrong"),
        pytest.fail.Exception("a verdict"),
        pytest.skip.Exception("a lack"),
        KeyboardInterrupt(),
    ],
)
def test_what_is_meant_for_people_is_none(error: BaseException) -> None:
    assert not is_ours(in_perfgate(error))


def test_an_error_of_others_is_none() -> None:
    assert not is_ours(raised(lambda: json.loads("{")))
