"""What another user puts into the folder of locks stops nobody: it is passed over, or told."""

import importlib.util
import os
import stat
from pathlib import Path

import pytest

from perfgate.core.errors import InputError, RunError
from perfgate.machine.leases import GpuPool, LeaseOwner, lock_folder
from perfgate.machine.leases.lock_folder import LockFolder, open_folder

NOBODY, OTHER, TEAM = 65534, 65533, 4242
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
PLANTING = Path(__file__).with_name("programs") / "planting.py"


def kinds() -> list[str]:
    spec = importlib.util.spec_from_file_location("planting", PLANTING)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [*module.KINDS]


def lease(pool: GpuPool, count: int, *, whole: bool = False, wait_s: float = 0.0):
    owner = LeaseOwner("run-1", "b200-serve")
    return pool.lease(count, whole=whole, owner=owner, wait_s=wait_s, tell=lambda _: None)


@pytest.mark.parametrize("kind", kinds())
def test_a_session_passes_over(pool: GpuPool, start, locks: Path, kind: str) -> None:
    """It waits its turn beside it, under a ticket of its own, and gets what it waits for."""
    start("planting", locks, os.geteuid(), kind).says("planted")
    folder = LockFolder(locks)
    with folder.file("fake-machine.lock") as machine:
        assert machine.try_lock()
        busy = pytest.raises(RunError, match="the machine is held by")
        with busy as caught, lease(pool, 7, wait_s=0.2):
            pass
        assert "queued before" not in caught.value.message
    with lease(pool, 7, wait_s=30):
        pass
    with lease(pool, 8, whole=True, wait_s=30):
        pass


@only_root
@pytest.mark.parametrize("user", [0, OTHER])
def test_all_of_it_by_another_user(start, locks: Path, tmp_path: Path, user: int) -> None:
    open_to_all(locks, tmp_path)
    start("planting", locks, NOBODY).says("planted")
    first = start("holder", 7, "part", 0)
    first.says("got 0,1,2,3,4,5,6")
    second = start("holder", 7, "part", 60, *([user] if user else []))
    second.says("waiting for 7 GPUs: GPUs 0-6 are held by run")
    third = start("holder", 1, "part", 60, *([user] if user else []))
    third.says("waiting for 1 GPU: queued before: run")
    first.let_go()
    second.says("got 0,1,2,3,4,5,6")
    second.let_go()
    while not (line := third.says("")).startswith("got"):
        assert line.startswith("waiting")


@only_root
def test_a_guard_that_another_user_keeps_is_told_with_his_name(
    start, locks: Path, tmp_path: Path
) -> None:
    open_to_all(locks, tmp_path)
    held = start("holding", locks / "guard.lock", NOBODY)
    held.says("held")
    told = start("holder", 1, "part", 0, OTHER).says("error gpus_busy: 1 GPU did not become free")
    assert f"is kept locked by pid {held.pid} (" in told
    assert f"uid {NOBODY})" in told
    assert "its user or root must end that process" in told


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "private"])
@pytest.mark.parametrize("name", ["guard.lock", "fake-machine.lock", "fake-gpu-0.lock"])
def test_in_the_place_of_a_lock_it_is_told_with_its_owner(
    pool: GpuPool, locks: Path, name: str, kind: str
) -> None:
    file = locks / name
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "link":
            file.symlink_to("/etc/passwd")
        case "private" if os.geteuid() == 0:
            pytest.skip("root may open it")
        case "private":
            file.touch(0)
    with pytest.raises(InputError, match=f"{name} cannot be opened") as caught, lease(pool, 8):
        pass
    assert f"uid {os.geteuid()}" in caught.value.problem
    assert caught.value.hint == f"have its owner or root remove it: rm -r {file}"


def test_a_file_of_another_name_is_not_written_to(pool: GpuPool, locks: Path) -> None:
    """Where a system lets users link files of others (protected_hardlinks), such as /etc/shadow."""
    treasure = locks.parent / "treasure"
    treasure.write_text("keep me")
    (locks / "fake-gpu-0.lock").hardlink_to(treasure)
    with lease(pool, 8):
        pass
    assert treasure.read_text() == "keep me"


def test_a_folder_put_in_its_place_is_not_used(locks: Path) -> None:
    """The owner of the folder could lead what root writes to another place."""
    folder = LockFolder(locks)
    treasure = locks.parent / "treasure"
    treasure.mkdir()
    locks.rename(locks.with_name("moved"))
    locks.symlink_to(treasure)
    with folder.file("gpu-1.lock") as file:
        assert file.try_lock()
    assert list(treasure.iterdir()) == []
    with pytest.raises(OSError, match="Not a directory"):
        LockFolder(locks)


# The folder itself


def open_to_all(locks: Path, tmp_path: Path) -> None:
    locks.chmod(0o1777)
    for folder in tmp_path, *tmp_path.parents[:3]:  # pytest's own, which nobody else may enter
        folder.chmod(folder.stat().st_mode | 0o011)


def test_a_folder_in_which_everybody_deletes_everything_is_refused(locks: Path) -> None:
    locks.chmod(0o777)
    with pytest.raises(InputError, match="it has no sticky bit") as caught:
        open_folder({"PERFGATE_LEASES": str(locks)})
    assert caught.value.hint == f"have its owner or root set it: chmod +t {locks}"
    locks.chmod(0o1777)
    assert open_folder({"PERFGATE_LEASES": str(locks)}).path == locks


@only_root
def test_a_folder_of_another_user_is_a_note_in_every_lease(
    pool: GpuPool, locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was first on this machine made the default; leases go on, and records say whose."""
    monkeypatch.delenv("PERFGATE_LEASES")
    monkeypatch.setattr(lock_folder, "DEFAULT", locks)
    locks.chmod(0o1777)
    os.chown(locks, NOBODY, NOBODY)
    with lease(GpuPool.of_machine(), 1) as mine:
        (note,) = mine.notes
    assert f"the folder of the locks, {locks}, belongs to" in note
    assert "who can delete others' locks" in note
    os.chown(locks, 0, 0)
    with lease(GpuPool.of_machine(), 1) as mine:
        assert mine.notes == ()


@only_root
@pytest.mark.parametrize("mode", [0o2770, 0o3770])
def test_a_folder_of_a_group(start, locks: Path, tmp_path: Path, mode: int) -> None:
    """For its members alone; they may delete each other's locks where it is not sticky."""
    open_to_all(locks, tmp_path)
    os.chown(locks, 0, TEAM)
    locks.chmod(mode)
    member = start("holder", 1, "part", 0, NOBODY, TEAM)
    member.says("got 0")
    assert (locks / "fake-gpu-0.lock").stat().st_gid == TEAM
    assert stat.S_IMODE((locks / "fake-gpu-0.lock").stat().st_mode) == 0o666
    other = start("holder", 8, "part", 60, OTHER, TEAM)
    other.says("waiting for 8 GPUs: GPU 0 is held by run")
    member.let_go()
    other.says("got 0,1,2,3,4,5,6,7")
    start("holder", 1, "part", 0, OTHER).says("error PERFGATE_LEASES: cannot be the folder")
