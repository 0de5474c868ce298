"""Shared memory that killed programs leave: removed where it is surely theirs, and only there."""

import ctypes
import json
import mmap
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from tables import each
from witnesses import eventually, everybody, kill_at_once, living, program, running, signed

from perfgate.launchers.base import Exit, Job
from perfgate.launchers.local import shared_memory

SHM = Path("/dev/shm")
OURS, ANOTHERS = 1000, 1001  # users
in_the_first_namespace = pytest.mark.skipif(
    str(Path("/proc/self/ns/pid").readlink()) != shared_memory.FIRST_PID_NAMESPACE,
    reason="numbers of processes say little inside a container",
)


@pytest.fixture
def name():
    """Of a file that is in /dev/shm in no other test."""
    name = f"perfgate-test-{uuid.uuid4().hex}"
    yield name
    for path in SHM.glob(f"*{name}"):
        path.unlink()


@pytest.fixture
def share(start, roll, name):
    """Starts a program that shares memory in some way, and waits until it does."""

    def share(how: str):
        job = start(*program("sharing", how, roll, name))
        eventually(lambda: signed(roll))
        return job

    return share


def found(ended: Exit) -> tuple[str, ...]:
    return tuple(one for one in ended.leftovers if one.startswith("shared memory"))


@pytest.mark.parametrize(
    ("how", "killed"),
    [
        ("mapped", "none"),
        ("child", "none"),
        ("child", "program"),
        ("child", "all"),  # the whole of it was looked at when the server was ready
        ("python", "children"),  # its resource tracker
    ],
)
def test_what_a_killed_program_shared_is_removed_and_told(share, name, monkeypatch, how, killed):
    job = share(how)
    assert (SHM / name).exists()
    monkeypatch.setattr(Job, "listens", lambda *_: killed == "all")
    assert job.listens(8000) == (killed == "all")
    itself = psutil.Process(job.pid)
    if killed == "children":
        kill_at_once(*eventually(itself.children))
    elif killed != "none":
        kill_at_once(*(job.processes() if killed == "all" else [itself]))
    ended = job.stop(0) if killed in ("none", "children") else job.wait()
    assert found(ended) == (f"shared memory {name}",)
    assert not (SHM / name).exists()


def test_so_it_is_when_perfgate_is_killed(roll, name, tmp_path):
    mark = uuid.uuid4().hex
    jobs = json.dumps({"job": program("sharing", "mapped", roll, name)})
    with running(program("driver", tmp_path, "", jobs), mark, dict(os.environ)) as driver:
        eventually(lambda: signed(roll))
        driver.kill()
        eventually(lambda: not everybody(mark))
    assert not (SHM / name).exists()


@pytest.mark.parametrize("which", [[0], [1], [0, 1]], ids=["outer", "inner", "both"])
def test_so_it_is_when_wardens_are_killed(share, name, roll, which):
    job = share("child")
    job.processes()
    kill_at_once(*(job._wardens[index] for index in which))
    assert f"shared memory {name}" in job.wait().leftovers
    assert not (SHM / name).exists()
    assert living(roll) == []


def test_what_others_made_meanwhile_or_before_stays(share, name):
    (SHM / name).touch()
    job = share("mapped")
    other = SHM / f"torch_999999999_{name}"
    other.touch()
    assert found(job.stop(0)) == ()
    assert (SHM / name).exists()
    assert other.exists()


@pytest.mark.parametrize("mapped", [True, False])
def test_what_another_living_process_uses_stays(share, name, mapped):
    job = share("mapped")
    with (SHM / name).open("rb+") as file:
        kept = mmap.mmap(file.fileno(), 4096) if mapped else file
        if mapped:
            file.close()
        assert found(job.stop(0)) == ()
        assert (SHM / name).exists()
        kept.close()


def test_a_file_that_the_program_only_wrote_stays(share, name):
    assert found(share("written").stop(0)) == ()
    assert (SHM / name).read_text() == "a log\n"


@in_the_first_namespace
def test_a_library_s_file_goes_by_the_number_in_its_name(share, name):
    job = share("named")
    file = f"torch_{job.pid}_{name}"
    psutil.Process(job.pid).kill()
    assert found(job.wait()) == (f"shared memory {file}",)
    assert not (SHM / file).exists()


@in_the_first_namespace
@each(
    "file, named",
    [
        ("torch_4242_7_1", True),
        ("__KMP_REGISTERED_LIB_4242_0", True),
        ("cuda.shm.3e8.1092.1", True),
        ("cuda.shm.3e8.4242.1", False),
        ("torch_14242_7_1", False),
        ("results-4242_7", False),
    ],
)
def test_only_names_of_known_libraries_tell_whose_a_file_is(monkeypatch, file, named):
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    memory = shared_memory.SharedMemory()
    memory.look({4242})
    assert memory._is_named(shared_memory.File(file, 1, 1, private=True)) is named


@pytest.mark.parametrize("attached", [False, True])
def test_a_segment_of_system_v_goes_unless_somebody_is_attached(share, roll, attached):
    job = share("segment")
    number = int((roll / ".segment").read_text())
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmdt.argtypes = [ctypes.c_void_p]
    at = libc.shmat(number, None, 0) if attached else None
    ended = job.stop(0)
    there = number in {one.number for one in shared_memory._segments()}
    assert there is attached
    assert found(ended) == (() if attached else (f"shared memory segment {number}",))
    if attached:
        libc.shmdt(at)
        assert shared_memory._remove_segment(shared_memory.Segment(number, 0, 0, 0))


@each(
    "uid, shared, counts",
    [
        (OURS, "8 kB", ["open", "private"]),
        (OURS, "0 kB", []),
        (ANOTHERS, "8 kB", ["open"]),
        (ANOTHERS, "0 kB", []),
        (0, "8 kB", []),
    ],
)
def test_an_unreadable_process_counts_where_it_could_share(monkeypatch, uid, shared, counts):
    status = f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nRssShmem:\t{shared}\n".encode()
    monkeypatch.setattr(os, "geteuid", lambda: OURS)
    monkeypatch.setattr(shared_memory, "_read", lambda path: status)
    files = [shared_memory.File(name, 1, 1, name == "private") for name in ("open", "private")]
    assert [one.name for one in files if shared_memory._may_use("7", one)] == counts


def test_a_process_of_another_user_that_cannot_be_read_does_not_stop_it(name):
    if os.geteuid() != 0:
        pytest.skip("needs the right to become another user")
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import shared_memory as s\n"
        "os.setgid(65534); os.setuid(65534); memory = s.SharedMemory()\n"
        "os.close(os.open('/dev/shm/' + sys.argv[2], os.O_CREAT, 0o600))\n"
        "memory._used = memory._new_files(); print(*memory.remove(()))"
    )
    folder = str(Path(shared_memory.__file__).parent)
    call = [sys.executable, "-c", code, folder, name]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert name in done.stdout.split()


def test_a_look_that_hangs_does_not_keep_the_end_waiting(monkeypatch, name):
    monkeypatch.setattr(shared_memory, "LONGEST_LOOK_S", 0.05)
    monkeypatch.setattr(shared_memory, "_read", lambda path: time.sleep(1) or b"")
    memory = shared_memory.SharedMemory()
    (SHM / name).touch()
    memory.look({os.getpid()})
    assert memory.remove(()) == []
    assert (SHM / name).exists()
