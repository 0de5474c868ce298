"""Programs that are hard to end: ``hider.py KIND ROLL …``. Each signs the roll for a test."""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

LIVES = 20
kind, roll, *rest = sys.argv[1:]


def sign(role: str) -> None:
    """Write down this process and its start, which tells it from a later one of the same pid."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    unfinished = Path(roll, f".{os.getpid()}")
    unfinished.write_text(f"{os.getpid()} {start}")
    unfinished.rename(Path(roll, role))


def stay(role: str, *, deaf: bool = False) -> None:
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sign(role)
    while True:
        signal.pause()


def obedient() -> None:
    """Runs until it is told to end, and ends with status 0 then."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    stay("program")


def deaf() -> None:
    """Ignores what it is told; a child of it does, too."""

    def hear(number: int, _: object) -> None:
        os.write(1, f"heard {signal.Signals(number).name}\n".encode())

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, hear)
    stay("child" if os.fork() == 0 else "program")


def daemon() -> None:
    """Starts a daemon the classical way (fork, setsid, fork) and stays, or ends with `--leave`."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        os.chdir("/")
        stay("daemon", deaf=True)
    os.wait()
    sign("program")
    while not Path(roll, "daemon").exists():
        pass
    if rest != ["--leave"]:
        signal.pause()


def retitled() -> None:
    """Its child changes name, title and process group, as engine workers do."""
    if os.fork() != 0:
        stay("program")
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(15, b"VLLM::Worker", 0, 0, 0)  # PR_SET_NAME
    with contextlib.suppress(ImportError):
        from setproctitle import setproctitle

        setproctitle("VLLM::Worker_TP0")
    stay("worker", deaf=True)


def scrubbed() -> None:
    """Its grandchild has a session of its own, an empty environment and no living parent."""
    if rest == ["grandchild"]:
        stay("grandchild", deaf=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, [sys.executable, *sys.argv, "grandchild"], {})  # noqa: S606
        os._exit(0)
    os.wait()
    sign("program")
    signal.pause()


def phoenix(life: int = 0) -> None:
    """Forks itself again whenever it is told to end, twenty times; the last one does not listen."""

    def rise(*_: object) -> None:
        # Told again before it has its own handler, the new one would live this life once more.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        if life < LIVES and os.fork() == 0:
            phoenix(life + 1)
        elif life < LIVES:
            os._exit(0)

    signal.signal(signal.SIGTERM, rise)
    sign("program" if life == 0 else f"life {life}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    while True:
        signal.pause()


if __name__ == "__main__":
    globals()[kind]()
