"""A rank says who it is: a program that a launcher starts on every rank, before the engine.

Run by its text (``python -c``), since it must work in a container that sees no file of perfgate:
standard library, and mpi4py where the engine's Python has it. As "Hello world from rank i" of the
DeepSeek-V3 example, section "mpirun", but that no compiler is needed, and that the ranks also reach
each other. Each prints two lines of JSON: who it is, and then how many it has reached.
"""

import importlib
import json
import os
import sys
from pathlib import Path

# By what launchers tell a rank where there is no MPI: Open MPI's mpirun, PMIx, Slurm.
RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
SIZE = ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")


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


def main() -> None:
    """Say who this rank is, by MPI itself, or by the launcher's variables."""
    try:
        version = importlib.import_module("mpi4py").__version__
    except ModuleNotFoundError:
        rank, size = told(*RANK), told(*SIZE)
        if rank is None or size is None:
            sys.exit("no mpi4py in " + sys.executable + ", and no launcher's variables")
        say(rank=int(rank), size=int(size), node=node(), by="")
        return
    mpi = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    rank = world.Get_rank()
    library = mpi.Get_library_version().split(",")[0].strip()
    by = f"mpi4py {version}, {library}"
    say(rank=rank, size=world.Get_size(), node=node(), by=by)
    say(rank=rank, reached=world.allreduce(1))


if __name__ == "__main__":
    main()
