"""What the launcher's tests see of processes: who is there, who is gone."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil

from perfgate.launchers.local.job import MARK, alive, marked

PROGRAMS = Path(__file__).parent / "launchers" / "programs"
PATIENCE_S = 120.0  # how long to wait for what must happen; a crowded machine is slow
HIDERS = {  # programs of hider.py that are hard to end → the roles that sign the roll
    "obedient": ["program"],
    "deaf": ["child", "program"],
    "daemon": ["daemon", "program"],
    "retitled": ["program", "worker"],
    "scrubbed": ["grandchild", "program"],
}
T = TypeVar("T")


def program(name: str, *arguments: object) -> tuple[str, ...]:
    """The argv of one of the misbehaving programs."""
    file = PROGRAMS / f"{name}.py"
    call = (str(file),) if file.exists() else (str(PROGRAMS / "hider.py"), name)
    return (sys.executable, *call, *map(str, arguments))


def eventually(look: Callable[[], T]) -> T:
    """The first true answer of `look`, which is asked less often the longer it takes."""
    began = time.monotonic()
    while not (answer := look()):
        waited_s = time.monotonic() - began
        assert waited_s < PATIENCE_S, f"still {answer!r} after {PATIENCE_S:.0f} s"
        time.sleep(min(0.02 + waited_s / 10, 0.3))
    return answer


def signed(roll: Path, role: str = "program") -> psutil.Process | None:
    """The process that signed the roll as `role`, if it lives."""
    file = roll / role
    if not file.exists():
        return None
    pid, start = file.read_text().split()
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        process = psutil.Process(int(pid))
    except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
        return None
    return process if fields[19] == start and alive(process) else None


def living(roll: Path) -> list[str]:
    """The roles on the roll whose processes live."""
    return sorted(role.name for role in roll.glob("[!.]*") if signed(roll, role.name))


@contextmanager
def roll_in(folder: Path) -> Iterator[Path]:
    """A new folder that programs sign; those still there in the end are killed."""
    roll = folder / "roll"
    roll.mkdir()
    try:
        yield roll
    finally:
        for one in (signed(roll, role) for role in living(roll)):
            if one is not None:
                one.kill()


def everybody(mark: str) -> list[psutil.Process]:
    """The processes marked with `mark`, and their descendants, marked or not."""
    found = set(marked(mark))
    for process in [*found]:
        try:
            found.update(filter(alive, process.children(recursive=True)))
        except psutil.NoSuchProcess:
            continue
    return sorted(found, key=lambda process: process.pid)


def wardens(mark: str) -> list[psutil.Process]:
    """The wardens started by a driver that bears `mark`: the outer, then the inner one."""
    found = [one for one in marked(mark) if "warden.py" in _command_line(one)]
    return sorted(found, key=lambda process: process.ppid() in [one.pid for one in found])


def kill_at_once(*processes: psutil.Process) -> None:
    """SIGKILL to all of them, so that none can act when another is gone."""
    for one in processes:
        one.suspend()
    for one in processes:
        one.kill()


def _command_line(process: psutil.Process) -> str:
    """Empty if it has ended since it was found, as what respawns does all the time."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@contextmanager
def running(
    argv: tuple[str, ...], mark: str, env: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A process marked with `mark`; whatever it leaves behind is killed in the end."""
    process = subprocess.Popen(
        argv, env={**env, MARK: mark}, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        for one in (*everybody(mark), process):
            one.kill()
        process.communicate()
