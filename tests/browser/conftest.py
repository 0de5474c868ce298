"""One browser for all tests of a worker."""

from collections.abc import Iterator

import pytest
from browsing import Browser, browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found
