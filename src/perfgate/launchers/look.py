"""Look at a node from within: a program of its own, run here, by Slurm or over ssh.

Run by path (``python -I -S look.py WHAT WORD…``): standard library only, Linux only, imported
by nobody. It prints one word, or several lines:

    port ADDRESS FILE          a free TCP port of that address, if FILE is seen there
    cpu MARK                   CPU seconds of the launch's processes on this node
    listens MARK PORT          yes or no: does one of them listen there?
    term MARK                  how many processes of the launch were asked to end
    end MARK…                  how many of these launches' processes were left, and are ended
    evidence MARK SECONDS PID… what these processes, else the launch's, are doing: a line of JSON
                               for each, then for each line of their Python stacks, for which
                               py-spy, where it is installed, has so many seconds
    rank                       who this rank is, and how many others it reaches: a line of JSON each

`rank` is run by this file's text (``python -c``) on every rank of a launch before the engine is,
since it must work in a container that sees no file of perfgate: mpi4py, where the engine's Python
has it, says who the rank is. As "Hello world from rank i" of the DeepSeek-V3 example, section
"mpirun", but that no compiler is needed, and that the ranks also reach each other.

A launch's processes carry its mark in the environment variable PERFGATE_LAUNCH. The srun that
started them may run on this node too; it is not one of them.
"""

import contextlib
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = b"PERFGATE_LAUNCH="
LISTENING = "0A"  # include/net/tcp_states.h
NOT_SEEN = 3
TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
# By what launchers tell a rank where there is no MPI: Open MPI's mpirun, PMIx, Slurm.
RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
SIZE = ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")


def launched(marks: set[str]) -> Iterator[Path]:
    """The folders in /proc of the living processes with one of the marks."""
    for folder in PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            values = [variable[len(MARK) :] for variable in variables if variable.startswith(MARK)]
            words = {word.decode() for value in values for word in value.split(b"/")}
            if words & marks and (folder / "comm").read_text().strip() != "srun":
                yield folder
        except OSError:  # it has ended, or is another person's
            continue


def port(address: str, file: str) -> str:
    """A free port."""
    if not Path(file).is_file():
        print(f"{os.uname().nodename} does not see {file}", file=sys.stderr)
        sys.exit(NOT_SEEN)
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        return str(probe.getsockname()[1])


def cpu(mark: str) -> str:
    """CPU seconds, those of collected children included."""
    ticks = 0
    for folder in launched({mark}):
        with contextlib.suppress(OSError):
            ticks += sum(stat(folder)[11:15])  # utime, stime, cutime, cstime
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
    return send({mark}, signal.SIGTERM, signal.SIGCONT)  # a stopped process would not hear it


def end(*marks: str) -> str:
    """SIGKILL what is left."""
    return send(set(marks), signal.SIGKILL)


def send(marks: set[str], *signals: int) -> str:
    """Send signals to all processes with one of the marks; how many these are."""
    pids = [int(folder.name) for folder in launched(marks)]
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
    return str(len(pids))


def evidence(mark: str, seconds: str, *pids: str) -> str:
    """What processes are doing: states first, since the stacks may take too long."""
    folders = [PROC / pid for pid in pids] or sorted(launched({mark}), key=began)
    for folder in folders:
        with contextlib.suppress(OSError):  # it has ended
            print(json.dumps(state(folder)), flush=True)
    for line in stacks(folders, time.monotonic() + float(seconds)):
        print(json.dumps(line), flush=True)
    return ""


def began(folder: Path) -> int:
    """When a process was started, in clock ticks: parents before children."""
    return stat(folder)[19]


def stat(folder: Path) -> list[int]:
    """The numbers of proc_pid_stat(5), from the third on; the state, a letter, is 0."""
    return [0, *map(int, (folder / "stat").read_text().rpartition(")")[2].split()[1:])]


def state(folder: Path) -> dict[str, object]:
    """A process's state, the kernel function that it waits in, and its arguments."""
    fields = (folder / "status").read_text(errors="replace").splitlines()
    facts = dict(line.split(":\t", 1) for line in fields if ":\t" in line)
    waits = "-"
    with contextlib.suppress(OSError):  # only its owner may read it
        waits = (folder / "wchan").read_text().strip().lstrip("0") or "-"
    words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return {
        "pid": folder.name,
        "name": facts["Name"],
        "state": facts["State"].partition("(")[2].rstrip(")"),
        "waits": waits,
        "argv": words[:-1],
    }


def stacks(folders: list[Path], deadline: float) -> Iterator[str]:
    """What py-spy says of those that are Python."""
    beside = Path(sys.executable).parent / "py-spy"
    py_spy = str(beside) if beside.is_file() else shutil.which("py-spy")
    if py_spy is None:
        yield f"no py-spy beside {sys.executable} or on PATH"
        return
    for folder in folders:
        with contextlib.suppress(OSError):
            if not (folder / "exe").readlink().name.startswith("python"):
                continue
            yield f"pid {folder.name}, by py-spy dump:"
            argv = [py_spy, "dump", "--pid", folder.name]
            left = max(0.0, deadline - time.monotonic())
            try:
                done = subprocess.run(argv, capture_output=True, timeout=left, check=False)
            except subprocess.TimeoutExpired:
                yield f"no answer from {py_spy} in {left:.0f} s"
                continue
            said = (done.stdout + done.stderr).decode(errors="replace")
            # It begins with the command line, which may hold a secret.
            yield from said[max(0, said.find("\nPython v")) :].strip().splitlines()


def told(*names: str) -> str | None:
    """The first of the variables that is set."""
    return next((os.environ[name] for name in names if name in os.environ), None)


def node() -> list[str]:
    """The node's name and what tells it from one of the same name."""
    name = told("SLURMD_NODENAME", "PMIX_HOSTNAME") or os.uname().nodename
    boot = Path("/proc/sys/kernel/random/boot_id")
    return [name, boot.read_text().strip() if boot.exists() else ""]


def say(**fields: object) -> None:
    """One line, by one write: those of other ranks do not come between."""
    os.write(1, (json.dumps({"perfgate_rank": fields}) + "\n").encode())


def rank() -> str:
    """Say who this rank is, by MPI itself, or by the launcher's variables."""
    try:
        version = importlib.import_module("mpi4py").__version__
    except ModuleNotFoundError:
        number, size = told(*RANK), told(*SIZE)
        if number is None or size is None:
            sys.exit("no mpi4py in " + sys.executable + ", and no launcher's variables")
        say(rank=int(number), size=int(size), node=node(), by="")
        return ""
    mpi = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    number = world.Get_rank()
    library = mpi.Get_library_version().split(",")[0].strip()
    by = f"mpi4py {version}, {library}"
    say(rank=number, size=world.Get_size(), node=node(), by=by)
    say(rank=number, reached=world.allreduce(1))
    return ""


if __name__ == "__main__":
    looks: tuple[Callable[..., str], ...] = (port, cpu, listens, term, end, evidence, rank)
    if answer := {look.__name__: look for look in looks}[sys.argv[1]](*sys.argv[2:]):
        print(answer)
