import os
import socket
import stat
from pathlib import Path

import pytest

from perfgate.core.untrusted_files import (
    FileTooLarge,
    UntrustedFile,
    make_new_folder,
    open_regular,
    opened_folder,
    opened_regular,
    read_regular,
    refuse_special,
)

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A file of somebody else, with content that must stay."""
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "foreign"
    file.write_text("precious\n")
    return file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def special(kind: str, path: Path) -> None:
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("needs root to make a device")
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    else:
        path.mkdir()


class TestLinks:
    @pytest.mark.parametrize("flags", [APPEND, ANEW, os.O_RDWR | os.O_CREAT, os.O_RDONLY])
    def test_a_link_is_not_followed(self, run: Path, foreign: Path, flags: int) -> None:
        link = run / "server.out"
        link.symlink_to(foreign)
        with pytest.raises(UntrustedFile, match=r"a symbolic link to '.*foreign'") as caught:
            opened_regular(link, flags)
        assert str(link) in str(caught.value)
        assert "fix: " in str(caught.value)
        assert foreign.read_text() == "precious\n"

    def test_a_link_to_nothing_makes_nothing(self, run: Path, foreign: Path) -> None:
        (run / "server.out").symlink_to(foreign.with_name("new"))
        with pytest.raises(UntrustedFile, match="a symbolic link"):
            opened_regular(run / "server.out", APPEND)
        assert [one.name for one in foreign.parent.iterdir()] == ["foreign"]

    def test_a_folder_is_never_a_link(self, run: Path, foreign: Path) -> None:
        (run / "start-1-new").symlink_to(foreign.parent)
        for use in (make_new_folder, opened_folder):
            with pytest.raises(UntrustedFile, match="expected: a folder") as caught:
                use(run / "start-1-new")
            assert caught.value.file == run / "start-1-new"
        assert [one.name for one in foreign.parent.iterdir()] == ["foreign"]

    def test_what_follows_a_link_in_its_name_cannot_reach_the_terminal(self, run: Path) -> None:
        (run / "a").symlink_to("\x1b]0;owned\x07")
        with pytest.raises(UntrustedFile) as caught:
            read_regular(run / "a", 1)
        assert "\x1b" not in str(caught.value)


class TestSpecialFiles:
    @pytest.mark.parametrize("kind", ["FIFO", "socket", "device", "folder"])
    @pytest.mark.parametrize("flags", [os.O_RDONLY, APPEND, os.O_RDWR | os.O_CREAT])
    def test_only_regular_files_are_opened_and_nothing_waits(self, run, kind, flags) -> None:
        special(kind, run / "it")
        with pytest.raises(UntrustedFile, match=f"found: a {kind}\n  expected: a regular file"):
            opened_regular(run / "it", flags)
        with pytest.raises(UntrustedFile):
            refuse_special(run / "it")
        if kind != "folder":
            with pytest.raises(UntrustedFile, match="expected: a folder"):
                make_new_folder(run / "it")


class TestOrdinaryFiles:
    def test_are_made_written_and_read(self, run: Path) -> None:
        file = run / "server.out"
        with os.fdopen(opened_regular(file, APPEND), "ab") as out:
            out.write(b"one\n")
            assert os.get_blocking(out.fileno())
        with os.fdopen(opened_regular(file, APPEND), "ab") as out:
            out.write(b"two\n")
        with open_regular(file) as lines:
            assert list(lines) == [b"one\n", b"two\n"]
        os.close(opened_regular(file, ANEW))
        assert read_regular(file, 0) == b""
        refuse_special(file)

    def test_one_that_is_missing_is_told_as_ever(self, run: Path) -> None:
        refuse_special(run / "none")
        for use in (open_regular, opened_folder):
            with pytest.raises(FileNotFoundError):
                use(run / "none")
            with pytest.raises(FileNotFoundError):
                use(run / "none" / "none")

    def test_a_limit_is_held(self, run: Path) -> None:
        (run / "result.json").write_bytes(b"12345")
        assert read_regular(run / "result.json", 5) == b"12345"
        with pytest.raises(FileTooLarge, match="5 bytes\n  expected: at most 4 bytes"):
            read_regular(run / "result.json", 4)

    def test_folders_are_writable_by_their_owner_alone(self, run: Path) -> None:
        before = os.umask(0)
        try:
            make_new_folder(run / "start-1-new")
        finally:
            os.umask(before)
        assert (run / "start-1-new").stat().st_mode & 0o777 == 0o755
        os.close(opened_folder(run / "start-1-new"))
        with pytest.raises(FileExistsError):
            make_new_folder(run / "start-1-new")

    def test_a_relative_path_starts_here(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(run)
        make_new_folder(Path("a"))
        os.close(opened_regular(Path("a/b"), APPEND))
        assert (run / "a" / "b").is_file()
