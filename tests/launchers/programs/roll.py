"""The roll that misbehaving programs sign, so that a test can say later whether they are gone."""

import os
import sys
from pathlib import Path


def folder() -> Path:
    """Where to sign: the program's first argument."""
    return Path(sys.argv[1])


def sign(role: str) -> None:
    """Write down this process and its start, which tells it from a later one of the same pid."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    unfinished = folder() / f".{os.getpid()}"
    unfinished.write_text(f"{os.getpid()} {start}")
    unfinished.rename(folder() / role)
