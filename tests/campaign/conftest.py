"""What tests of this room share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perfgate.runs.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    """A new run folder."""
    made = RunFolder.create(tmp_path / "run", {"synthetic": False})
    yield made
    made.close()
