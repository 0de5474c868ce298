"""What a launch is doing on this node: a program that is run on each node of a launch.

``python -m perfgate.launchers.nodes.hang_dump MARK FILE`` writes into ``FILE.<name of the node>``
what the launcher of the node's own machine would write: see `perfgate.launchers.hang_dump`.
"""

import os
import sys
from pathlib import Path

import psutil

from perfgate.core.program_query import ask_here
from perfgate.launchers.hang_dump import write_evidence
from perfgate.launchers.local import orphans

NODE = "SLURMD_NODENAME"
SRUN = "srun"  # the call that started the launch may run on this node, too


def part_of(file: Path, node: str) -> Path:
    """Where a node writes what belongs into `file`."""
    return file.with_name(f"{file.name}.{node}")


def main(mark: str, file: Path) -> None:
    """Write down what the processes of the launch `mark` are doing."""
    node = os.environ[NODE]
    found = [one for one in orphans.marked(mark) if _name(one) != SRUN]
    found.sort(key=lambda one: one.create_time())  # parents before children
    write_evidence(
        part_of(file, node), f"on {node}:", found, lambda argv, s: ask_here(argv, s).text
    )


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return SRUN


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
