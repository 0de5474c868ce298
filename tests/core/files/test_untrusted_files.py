import grp
import os
import pwd
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refused
from tables import each

from perfgate.core.files import untrusted_files
from perfgate.core.files.untrusted_files import UntrustedFile, doubt, opened_regular, read_input

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A file of somebody else, with content that must stay."""
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "foreign"
    file.write_text("precious\n")
    return file


@pytest.mark.parametrize("flags", [APPEND, os.O_RDWR | os.O_CREAT, os.O_RDONLY])
def test_a_link_is_not_followed(tmp_path: Path, foreign: Path, flags: int) -> None:
    for name in ("foreign", "new"):
        link = tmp_path / name
        link.symlink_to(foreign.with_name(name))
        with pytest.raises(UntrustedFile, match=rf"a symbolic link to '.*{name}'") as caught:
            opened_regular(link, flags)
        assert str(link) in str(caught.value)
        assert "fix: " in str(caught.value)
    assert foreign.read_text() == "precious\n"
    assert [one.name for one in foreign.parent.iterdir()] == ["foreign"]


def test_a_folder_is_never_a_link_and_no_terminal_obeys_its_target(tmp_path, foreign) -> None:
    (tmp_path / "start-1-new").symlink_to(foreign.parent)
    for use in (untrusted_files.make_new_folder, untrusted_files.opened_folder):
        with pytest.raises(UntrustedFile, match="expected: a folder") as caught:
            use(tmp_path / "start-1-new")
        assert caught.value.file == tmp_path / "start-1-new"
    assert [one.name for one in foreign.parent.iterdir()] == ["foreign"]
    (tmp_path / "a").symlink_to("\x1b]0;owned\x07")
    with pytest.raises(UntrustedFile) as caught:
        untrusted_files.read_regular(tmp_path / "a", 1)
    assert "\x1b" not in str(caught.value)


@each("flags", [os.O_RDONLY, APPEND, os.O_RDWR | os.O_CREAT])
def test_only_regular_files_are_opened_and_nothing_waits(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "FIFO")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
    kinds = {tmp_path / kind: kind for kind in ("FIFO", "socket", "folder")}
    for path, kind in {**kinds, Path("/dev/zero"): "device"}.items():
        with pytest.raises(UntrustedFile, match=f"found: a {kind}\n  expected: a regular file"):
            opened_regular(path, flags)
        refused(untrusted_files.refuse_special, path, error=UntrustedFile)
        error = FileExistsError if kind == "folder" else UntrustedFile
        with pytest.raises(error, match="exists" if kind == "folder" else "expected: a folder"):
            untrusted_files.make_new_folder(path)


def test_ordinary_files_are_made_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "server.out"
    for line in (b"one\n", b"two\n"):
        with os.fdopen(opened_regular(file, APPEND), "ab") as out:
            out.write(line)
            assert os.get_blocking(out.fileno())
    with untrusted_files.open_regular(file) as lines:
        assert list(lines) == [b"one\n", b"two\n"]
    untrusted_files.refuse_special(file)
    # One that is missing is reported as ever.
    untrusted_files.refuse_special(tmp_path / "none")
    for use in (untrusted_files.open_regular, untrusted_files.opened_folder):
        for missing in ("none", "none/none"):
            refused(use, tmp_path / missing, error=FileNotFoundError)


def test_folders_are_writable_by_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        untrusted_files.make_new_folder(tmp_path / "start-1-new")
    finally:
        os.umask(before)
    assert (tmp_path / "start-1-new").stat().st_mode & 0o777 == 0o755
    os.close(untrusted_files.opened_folder(tmp_path / "start-1-new"))


def test_a_regular_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    assert read_input(tmp_path / "a", 5) == read_input(tmp_path / "link", 5) == b"12345"
    with untrusted_files.open_input(tmp_path / "link") as file:
        assert file.read() == b"12345"
    assert untrusted_files.read_regular(tmp_path / "a", 5) == b"12345"
    told = "5 bytes\n  expected: at most 4 bytes"
    with pytest.raises(untrusted_files.FileTooLarge, match=told):
        untrusted_files.read_regular(tmp_path / "a", 4)


@pytest.mark.timeout(20)  # it would wait for ever; /proc/kmsg for the next message of the kernel
def test_what_is_no_regular_file_is_refused_at_once_or_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name, kind in (("fifo", "a FIFO"), ("link", "a device")):
        refused(read_input, tmp_path / name, 10, match=f"not a regular file\n  found: {kind}")
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "b", FileNotFoundError)):
        refused(read_input, path, 10, error=error)
    for path in (Path("/proc/self/environ"), Path("/proc/self/maps")):
        assert read_input(path, 1000) == b""
        assert untrusted_files.open_input(path).read() == b""


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    sparse.touch()
    os.truncate(sparse, 2**40)  # more than any memory
    caught = refused(read_input, sparse, 1000, "scenario file")
    assert str(caught) == (
        f"{sparse}: too large for a scenario file\n  found: 1099511627776 bytes\n"
        "  expected: at most 1000 bytes (docs/reference/settings.md)"
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.touch(0o644)
    return path


def test_ones_own_is_beyond_doubt_and_what_everybody_may_write_to_is_not(file: Path) -> None:
    file.chmod(0o644)
    assert [doubt(one) for one in (file, file.parent, file.with_name("missing"))] == [None] * 3
    for mode in (0o646, 0o666, 0o777, 0o1777):
        file.chmod(mode)
        assert doubt(file) == f"everybody may write to it (mode {mode:04o})"


@only_root
def test_another_users_and_roots_which_all_believe(file: Path, monkeypatch) -> None:
    monkeypatch.setattr(untrusted_files.os, "geteuid", lambda: 1234)
    assert doubt(file) is None
    os.chown(file, NOBODY, NOBODY)
    assert str(doubt(file)).startswith("it belongs to")
    assert f"uid {NOBODY}" in str(doubt(file))


@only_root
def test_the_caller_of_sudo_is_believed_by_root_alone(file: Path, monkeypatch) -> None:
    os.chown(file, 1234, 1234)
    for caller, user, is_believed in (("1234", 0, True), ("²" * 99, 0, False), ("1234", 4, False)):
        monkeypatch.setenv("SUDO_UID", caller)
        monkeypatch.setattr(untrusted_files.os, "geteuid", lambda user=user: user)
        assert (doubt(file) is None) is is_believed


@only_root
def test_a_link_is_its_makers_wherever_it_leads(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert doubt(link) is None
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert "the link belongs to" in str(doubt(link))
    os.chown(link, 0, 0, follow_symlinks=False)
    os.chown(file, NOBODY, NOBODY)
    assert "it belongs to" in str(doubt(link))


@pytest.fixture
def names(file: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes up the names of group and user; the mode is that of an umask of 002."""
    file.chmod(0o664)

    def names(group: str | None, *members: str) -> None:
        known = {} if group is None else {file.stat().st_gid: group}
        made = lambda gid: SimpleNamespace(gr_name=known[gid], gr_mem=list(members))  # noqa: E731
        monkeypatch.setattr(grp, "getgrgid", made)
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="ada"))

    return names


@each(
    ("group", "members", "said"),
    [
        ("ada", (), None),
        ("ada", ("ada",), None),
        ("ada", ("ada", "grace"), "the group ada"),  # a guest
        ("perf", (), "the group perf"),
    ],
)
def test_the_owners_private_group_or_a_teams(file: Path, names, group, members, said) -> None:
    names(group, *members)
    why = doubt(file)
    assert why is None if said is None else said in why and "write to it (mode 0664)" in why


@only_root
def test_numbers_without_names_as_in_a_container(file: Path, names, monkeypatch) -> None:
    names(None)
    monkeypatch.setattr(untrusted_files.os, "geteuid", lambda: 1234)
    for gid, is_private in ((1234, True), (0, True), (100, False)):
        os.chown(file, 1234, gid)
        assert (doubt(file) is None) is is_private
