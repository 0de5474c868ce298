"""The folder of the locks: shared by users, on this machine, and usable when the disk is full."""

import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfgate.core.errors import InputError, RunError
from perfgate.machine.leases import GpuPool, LeaseOwner, lock_folder
from perfgate.machine.leases.lock_folder import LockFolder, open_folder


def unusable(setting: Path) -> InputError:
    with pytest.raises(InputError, match="cannot be the folder of the machine's locks") as caught:
        open_folder({"PERFGATE_LEASES": str(setting)})
    assert caught.value.field == "PERFGATE_LEASES"
    assert "mkdir -m 1777" in (caught.value.hint or "")
    return caught.value


def test_a_folder_that_a_person_names_must_exist(tmp_path) -> None:
    """A slip of the pen must not make a second folder, and so a second owner of each GPU."""
    assert "no such folder" in str(unusable(tmp_path / "missing"))
    (tmp_path / "file").touch()
    assert "no such folder" in str(unusable(tmp_path / "file"))


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(lock_folder.os, "access", lambda path, mode: False)  # root may everything
    assert "may not write" in str(unusable(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_private_folder_is_told(start, locks, tmp_path) -> None:
    for folder in tmp_path, *tmp_path.parents[:3]:  # pytest's own, which nobody else may enter
        folder.chmod(folder.stat().st_mode | 0o011)
    locks.chmod(0o755)
    other = start("holder", 1, "part", 0, 65534, env={"LOGNAME": "grace"})
    assert "this user may not write to it" in other.says("error PERFGATE_LEASES: cannot be")


def test_a_read_only_file_system_is_told() -> None:
    """/proc refuses new files even to root."""
    with pytest.raises(InputError, match="PERFGATE_LEASES"), LockFolder(Path("/proc")).file("x"):
        pass


def test_a_network_file_system_is_refused(tmp_path, monkeypatch) -> None:
    mounts = [("/", "ext4"), (str(tmp_path), "nfs4"), (str(tmp_path / "local"), "xfs")]
    monkeypatch.setattr(
        lock_folder.psutil,
        "disk_partitions",
        lambda all: [SimpleNamespace(mountpoint=place, fstype=kind) for place, kind in mounts],
    )
    (tmp_path / "local").mkdir()
    assert "network file system (nfs4)" in str(unusable(tmp_path))
    assert open_folder({"PERFGATE_LEASES": str(tmp_path / "local")})


def test_the_default_is_made_for_all_users(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(lock_folder, "DEFAULT", tmp_path / "perfgate-leases")
    before = os.umask(0o077)
    try:
        folder = open_folder({})
        with folder.file("gpu-1.lock") as file:
            assert file.try_lock()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o1777
    assert stat.S_IMODE((folder.path / "gpu-1.lock").stat().st_mode) == 0o666
    assert [one.name for one in folder.path.iterdir()] == ["gpu-1.lock"]
    assert open_folder({}).path == folder.path


def test_the_default_is_never_anothers_link(tmp_path, monkeypatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(lock_folder, "DEFAULT", tmp_path / "link")
    with pytest.raises(InputError, match="not a folder"):
        open_folder({})


def test_a_lock_that_is_a_link_is_not_followed(tmp_path) -> None:
    (tmp_path / "treasure").write_text("keep me")
    (tmp_path / "gpu-1.lock").symlink_to(tmp_path / "treasure")
    with pytest.raises(InputError), LockFolder(tmp_path).file("gpu-1.lock"):
        pass
    assert (tmp_path / "treasure").read_text() == "keep me"


def test_a_lock_on_a_deleted_file_is_none(tmp_path) -> None:
    """A cleaner of old files must not give one GPU to two: one on each file of the same name."""
    folder = LockFolder(tmp_path)
    with folder.file("gpu-1.lock") as old:
        (tmp_path / "gpu-1.lock").unlink()
        with folder.file("gpu-1.lock") as new:
            assert not old.try_lock()
            assert new.try_lock()


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock_folder.fcntl, "flock", no_locks)
    with (
        LockFolder(tmp_path).file("gpu-1.lock") as file,
        pytest.raises(InputError, match=r"gpu-1\.lock cannot be locked: No locks available"),
    ):
        file.try_lock()


def lease(pool: GpuPool, count: int, wait_s: float = 0.0, tell=lambda _: None):
    owner = LeaseOwner("run-1", "b200-serve")
    return pool.lease(count, whole=False, owner=owner, wait_s=wait_s, tell=tell)


def no_room(*arguments: object, **named: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_takes_the_names_and_not_the_locks(pool, start, monkeypatch) -> None:
    with lease(pool, 8):
        pass  # the files are there
    with monkeypatch.context() as full:
        full.setattr(lock_folder.os, "pwrite", no_room)
        with lease(pool, 8):
            other = start("holder", 1, "part", 0)
            assert "GPUs 0-7 are held by an unknown holder" in other.says("error")


def test_without_room_for_a_ticket_one_waits_behind_all_who_have_one(
    pool, start, monkeypatch
) -> None:
    start("holder", 1, "part", 0).says("got 0")
    whole = start("holder", 8, "whole", 60)
    whole.says("waiting")
    monkeypatch.setattr(lock_folder.os, "link", no_room)
    told: list[str] = []
    with pytest.raises(RunError, match="queued before"), lease(pool, 1, 0.5, told.append):
        pass
    whole.kill()
    with lease(pool, 1, 60):
        pass


def test_a_full_disk_before_the_first_lease_is_an_error(pool, monkeypatch) -> None:
    monkeypatch.setattr(lock_folder.os, "link", no_room)
    with pytest.raises(RunError) as caught, lease(pool, 1):
        pass
    assert caught.value.failure == "disk_full"
