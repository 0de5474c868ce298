"""Input files: regular ones only, of bounded size; links are followed."""

import os
from pathlib import Path

import pytest

from perfgate.core.errors import InputError
from perfgate.core.input_files import open_input, read_input


def test_a_regular_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    assert read_input(tmp_path / "a", 5) == read_input(tmp_path / "link", 5) == b"12345"
    with open_input(tmp_path / "link") as file:
        assert file.read() == b"12345"


@pytest.mark.timeout(20)  # it would wait for ever
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name, kind in (("fifo", "a FIFO"), ("link", "a device")):
        with pytest.raises(InputError, match=f"not a regular file\n  found: {kind}"):
            read_input(tmp_path / name, 10)
    with pytest.raises(IsADirectoryError):
        read_input(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_input(tmp_path / "b", 10)


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(2**40)  # more than any memory
    with pytest.raises(InputError) as caught:
        read_input(sparse, 1000, "scenario file")
    assert str(caught.value) == (
        f"{sparse}: too large for a scenario file\n  found: 1099511627776 bytes\n"
        "  expected: at most 1000 bytes (docs/reference/settings.md)"
    )


@pytest.mark.timeout(20)  # /proc/kmsg waits for the next message of the kernel
def test_a_file_that_says_it_is_empty_is_not_read() -> None:
    for path in (Path("/proc/self/environ"), Path("/proc/self/maps")):
        assert read_input(path, 1000) == b""
        with open_input(path) as file:
            assert file.read() == b""
