"""What the tests of the local launcher share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from witnesses import roll_in


@pytest.fixture
def roll(tmp_path: Path) -> Iterator[Path]:
    """Where misbehaving programs sign that they have started."""
    with roll_in(tmp_path) as roll:
        yield roll
