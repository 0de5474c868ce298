"""Real programs that use the CPU: one that is a stranger to the tests, one that is theirs."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

BURN = Path(__file__).with_name("programs") / "burn.py"
PATIENCE_S = 40.0  # a crowded machine is slow


def burn(seconds: float, *rest: object) -> tuple[str, ...]:
    """The argv of the program."""
    return (sys.executable, "-I", "-S", str(BURN), str(seconds), *map(str, rest))


@contextmanager
def stranger(folder: Path, **variables: str) -> Iterator[psutil.Process]:
    """A process that burns CPU and descends from nobody here; killed in the end."""
    file = folder / "pid"
    environment = {**os.environ, **variables}
    subprocess.run(burn(30.0, file), check=True, stdout=subprocess.DEVNULL, env=environment)
    try:
        settled(file.exists)
        process = psutil.Process(int(file.read_text()))
        assert str(BURN) in process.cmdline()
        yield process
    finally:
        if file.exists():
            with contextlib.suppress(psutil.NoSuchProcess):
                found = psutil.Process(int(file.read_text()))
                if str(BURN) in found.cmdline():
                    found.kill()


def settled(is_so: Callable[[], object]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def burnt_s(burner: psutil.Process, least_s: float) -> float:
    """What it has used from now on; at least that much."""
    first_s = sum(burner.cpu_times()[:2])
    while (used_s := sum(burner.cpu_times()[:2]) - first_s) < least_s:
        time.sleep(0.05)
    return used_s
