"""Real programs that use the CPU: one that is a stranger to the tests, one that is theirs."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from witnesses import eventually

BURN = Path(__file__).with_name("programs") / "burn.py"


def burn(seconds: float, *rest: object) -> tuple[str, ...]:
    """The argv of the program."""
    return (sys.executable, "-I", "-S", str(BURN), str(seconds), *map(str, rest))


@contextmanager
def stranger(folder: Path, **variables: str) -> Iterator[psutil.Process]:
    """A process that burns CPU and descends from nobody here; killed in the end."""
    file = folder / "pid"
    environment = {**os.environ, **variables}
    subprocess.run(burn(30.0, file), check=True, stdout=subprocess.DEVNULL, env=environment)
    eventually(file.exists)
    process = psutil.Process(int(file.read_text()))
    try:
        yield process
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def burnt_s(burner: psutil.Process, least_s: float) -> float:
    """What it has used from now on; at least that much."""
    first_s = sum(burner.cpu_times()[:2])
    while (used_s := sum(burner.cpu_times()[:2]) - first_s) < least_s:
        time.sleep(0.05)
    return used_s
