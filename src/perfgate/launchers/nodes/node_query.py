"""NodeQuery: ask the nodes of a launch, by programs of this folder that are run there."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from perfgate.core import raw_log
from perfgate.core.untrusted_files import opened_regular, read_regular
from perfgate.launchers.nodes import hang_dump

LOOK = Path(__file__).with_name("look.py")
LOOK_S = 60.0


class NodeQuery(Protocol):
    """Asks the nodes of one launch, all of them at the same time."""

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        """What `look.py` answers, a line for each node.

        Raises:
            RunError: a node could not be asked.
        """

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        """Append to `file` what the launch does on the nodes, or why that is not known."""


def look_argv(*words: str) -> tuple[str, ...]:
    """The call of `look.py`, which a node must see under the same path as this machine."""
    return (sys.executable, "-I", "-S", str(LOOK), *words)


def dump_argv(mark: str, file: Path) -> tuple[str, ...]:
    """The call of `hang_dump.py`, which leaves a part of `file` for the node."""
    return (sys.executable, "-P", "-m", hang_dump.__name__, mark, str(file))


def gather_parts(file: Path, nodes: Sequence[str], failed: str = "") -> None:
    """Append to `file` the parts that the nodes have left, and then why one did not."""
    to = opened_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, raw_log.PRIVATE)
    with os.fdopen(to, "a", encoding="utf-8") as whole:
        for node in nodes:
            part = hang_dump.part_of(file, node)
            if part.exists():
                told = read_regular(part, raw_log.MOST_SEARCHED)
                whole.write(told.decode("utf-8", errors="replace"))
                part.unlink()
        whole.write(failed)
