"""Makes a file in /dev/shm, or a segment of System V, leaves it to whoever comes, and waits.

Arguments: how it is shared, the roll's folder, its name.
"""

import ctypes
import mmap
import os
import signal
from multiprocessing import shared_memory
from pathlib import Path

from hider import kind as how
from hider import rest, roll, sign

(name,) = rest
path = Path("/dev/shm", name)


def share() -> None:
    with path.open("wb+") as file:
        file.truncate(4096)
        globals()["kept"] = mmap.mmap(file.fileno(), 4096)


if how == "mapped":
    share()
elif how == "python":
    memory = shared_memory.SharedMemory(name, create=True, size=4096)
elif how == "child":
    if os.fork() == 0:
        share()
        sign("child")
        signal.pause()
    while not (Path(roll) / "child").exists():
        pass
elif how == "written":
    kept = path.open("w")
    kept.write("a log\n")
    kept.flush()
elif how == "named":
    path = path.with_name(f"torch_{os.getpid()}_{name}")
    path.touch()
elif how == "segment":
    number = ctypes.CDLL(None).shmget(0, 4096, 0o1600)  # IPC_PRIVATE, IPC_CREAT and user's rights
    (Path(roll) / ".segment").write_text(str(number))
sign("program")
signal.pause()
