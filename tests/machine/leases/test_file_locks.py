"""The folder of the locks: shared by users, on this machine, and usable when the disk is full."""

import errno
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest
from refusals import refused

from perfgate.core.errors import InputError, RunError
from perfgate.machine.leases import GpuPool, file_locks
from perfgate.machine.leases.file_locks import Busy, delete_unused, holding, let_go, note_in, take

NOBODY, OTHER, TEAM = 65534, 65533, 4242
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def files(folder: Path, *names: str) -> dict[Path, str]:
    return {folder / f"{name}.lock": name for name in names}


def unusable(setting: Path) -> InputError:
    with pytest.raises(InputError, match="cannot be used for the machine's locks") as caught:
        take(files(file_locks.lock_folder({"PERFGATE_LEASES": str(setting)}), "a"), 1, "run")
    assert caught.value.field == "PERFGATE_LEASES"
    return caught.value


def test_a_folder_that_a_person_names_must_exist(tmp_path: Path) -> None:
    """A slip of the pen must not make a second folder, and so a second owner of each GPU."""
    assert "No such file or directory" in str(unusable(tmp_path / "missing"))
    (tmp_path / "file").touch()
    assert "Not a directory" in str(unusable(tmp_path / "file"))
    unusable(Path("/proc"))  # which refuses new files even to root


def test_the_default_is_made_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "DEFAULT", tmp_path / "perfgate-leases")
    before = os.umask(0o077)
    try:
        folder = file_locks.lock_folder({})
        let_go(take(files(folder, "gpu-1"), 1, "run"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    assert stat.S_IMODE((folder / "gpu-1.lock").stat().st_mode) == 0o666
    assert file_locks.lock_folder({}) == folder


def test_a_link_is_never_followed(tmp_path: Path, monkeypatch) -> None:
    """Neither the default nor a lock is another's link."""
    (tmp_path / "treasure").write_text("keep me")
    (tmp_path / "gpu-1.lock").symlink_to(tmp_path / "treasure")
    refused(take, files(tmp_path, "gpu-1"), 1, "run")
    assert (tmp_path / "treasure").read_text() == "keep me"
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setattr(file_locks, "DEFAULT", tmp_path / "link")
    refused(file_locks.lock_folder, {}, match="Not a directory")


def test_the_first_free_ones_are_taken_or_none(tmp_path: Path) -> None:
    first = take(files(tmp_path, "a"), 1, "first")
    with pytest.raises(Busy, match=rf"^a held by run first \(pid {os.getpid()}, "):
        take(files(tmp_path, "a", "b"), 2, "second")
    both = take(files(tmp_path, "a", "b", "c", "d"), 2, "second")
    assert [lock.path.stem for lock in both] == ["b", "c"]
    let_go((*first, *both))
    let_go(take(files(tmp_path, "a", "b", "c"), 3, "third"))
    # A shared lock keeps those out who want it alone.
    shared = [take(files(tmp_path, "a"), 1, "run", shared=True) for _ in range(2)]
    let_go(shared[0])
    refused(take, files(tmp_path, "a"), 1, "run", error=Busy)
    let_go(shared[1])
    let_go(take(files(tmp_path, "a"), 1, "run"))


def test_a_deleted_file_locks_nothing(tmp_path: Path) -> None:
    """Whoever has it open, but not yet locked, when it is deleted tries again."""
    file = tmp_path / "a.lock"
    with holding(take(files(tmp_path, "a"), 1, "run")):
        delete_unused(file)
        assert file.exists()
    delete_unused(file)
    assert not file.exists()


def test_a_note_keeps_what_else_stands_in_it(tmp_path: Path) -> None:
    for marks in (["x"], ["x", "y"]):
        (lock,) = take(files(tmp_path, "a"), 1, "run")
        lock.write(marks=marks)
        let_go([lock])
    let_go(take(files(tmp_path, "a"), 1, "other"))
    note = note_in(tmp_path / "a.lock")
    assert (note["run"], note["marks"]) == ("other", ["x", "y"])


def test_a_file_system_without_locks_is_an_error(tmp_path: Path, monkeypatch) -> None:
    refusal = OSError(errno.ENOLCK, "No locks available")
    monkeypatch.setattr(file_locks.fcntl, "flock", Mock(side_effect=refusal))
    assert "No locks available" in str(unusable(tmp_path))


no_room = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))


def test_a_full_disk_takes_the_names_and_not_the_locks(pool: GpuPool, start, monkeypatch) -> None:
    monkeypatch.setattr(file_locks.os, "pwrite", no_room)
    with pool.lease(8, whole=False, run="run", wait_s=0, tell=print):
        other = start("holder", 1, "part", 0)
        assert "GPU 7 held by an unknown process" in other.says("error gpus_busy")


def test_a_full_disk_before_the_first_lease_is_an_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(file_locks.os, "open", no_room)
    caught = refused(take, files(tmp_path, "a"), 1, "run", error=RunError)
    assert caught.failure == "disk_full"


@only_root
def test_two_users_at_once_on_an_empty_folder(start, locks: Path) -> None:
    """Both make the same files, which nobody else could open by their umask."""
    locks.chmod(0o1777)
    users = [start("holder", 4, "part", 60, user) for user in (NOBODY, OTHER)]
    got = []
    for user in users:
        while not (line := user.says("")).startswith("got"):
            assert line.startswith("waiting for 4 GPUs")
        got.append(line)
    assert sorted(got) == ["got 0,1,2,3", "got 4,5,6,7"]


@only_root
@pytest.mark.parametrize("mode", [0o2770, 0o3770])
def test_a_folder_of_a_group(start, locks: Path, mode: int) -> None:
    """For its members alone; they may delete each other's locks where it is not sticky."""
    locks.chmod(0o1777)
    os.chown(locks, 0, TEAM)
    locks.chmod(mode)
    member = start("holder", 1, "part", 0, NOBODY, TEAM)
    member.says("got 0")
    assert (locks / "fake-gpu-0.lock").stat().st_gid == TEAM
    other = start("holder", 8, "part", 60, OTHER, TEAM)
    other.says("waiting for 8 GPUs: GPU 0 held by run")
    member.let_go()
    other.says("got 0,1,2,3,4,5,6,7")
    start("holder", 1, "part", 0, OTHER).says("error PERFGATE_LEASES: cannot be used")
