"""Look at a node from within: a program of its own that is run there, by Slurm or over ssh.

Run by path (``python -I -S look.py WHAT WORD…``): standard library only, Linux only, imported
by nobody. It prints one word:

    port ADDRESS FILE     a free TCP port of that address, if FILE is seen there
    cpu MARK              CPU seconds of the launch's processes on this node
    listens MARK PORT     yes or no: does one of them listen there?
    term MARK             how many processes of the launch were asked to end
    end MARK…             how many of these launches' processes were left, and are ended

A launch's processes carry its mark in the environment variable PERFGATE_LAUNCH. The srun that
started them may run on this node too; it is not one of them.
"""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = b"PERFGATE_LAUNCH="
LISTENING = "0A"  # include/net/tcp_states.h
NOT_SEEN = 3
TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


def launched(marks: set[str]) -> Iterator[Path]:
    """The folders in /proc of the living processes with one of the marks."""
    for folder in PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            words = {
                word
                for one in variables
                if one.startswith(MARK)
                for word in one[len(MARK) :].decode().split("/")
            }
            if words & marks and (folder / "comm").read_text().strip() != "srun":
                yield folder
        except OSError:  # it has ended, or is another person's
            continue


def port(address: str, file: str) -> str:
    """A free port."""
    if not Path(file).is_file():
        print(f"{os.uname().nodename} does not see {file}", file=sys.stderr)
        sys.exit(NOT_SEEN)
    with socket.socket() as probe:
        probe.bind((address, 0))
        return str(probe.getsockname()[1])


def cpu(mark: str) -> str:
    """CPU seconds, those of collected children included."""
    ticks = 0
    for folder in launched({mark}):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime of proc(5)
    return f"{ticks / TICKS:.2f}"


def listens(mark: str, number: str) -> str:
    """Whether the launch has the port."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in (PROC / "self" / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == int(number):
                    sockets.add(f"socket:[{fields[9]}]")
    for folder in launched({mark}):
        with contextlib.suppress(OSError):
            for descriptor in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) in sockets:
                        return "yes"
    return "no"


def term(mark: str) -> str:
    """SIGTERM to all of it, as the wardens do on this machine."""
    asked = 0
    for folder in launched({mark}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(int(folder.name), signal.SIGTERM)
            os.kill(int(folder.name), signal.SIGCONT)  # a stopped process would not hear it
            asked += 1
    return str(asked)


def end(*marks: str) -> str:
    """SIGKILL what is left."""
    left = [int(folder.name) for folder in launched(set(marks))]
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return str(len(left))


if __name__ == "__main__":
    looks: dict[str, Callable[..., str]] = {
        "port": port,
        "cpu": cpu,
        "listens": listens,
        "term": term,
        "end": end,
    }
    print(looks[sys.argv[1]](*sys.argv[2:]))
