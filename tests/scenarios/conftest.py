"""What many of these tests share: a file in an empty folder."""

from pathlib import Path

import pytest
from written_files import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file into an empty folder and gives its path."""

    def write_text(text: str | bytes, name: str = "small.yaml") -> Path:
        file = tmp_path / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write_text
