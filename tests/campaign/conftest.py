"""What tests of this room share."""

import pytest

from perfgate.runs.run_folder import RunFolder


@pytest.fixture
def run(tmp_path):
    """A new run folder."""
    made = RunFolder.create(tmp_path / "run", {"synthetic": False})
    yield made
    made.close()
