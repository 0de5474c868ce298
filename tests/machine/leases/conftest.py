"""What the tests of leases share: eight simulated GPUs, and processes that lease them."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from perfgate.machine.leases import GpuPool

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch):
    """The folder of this test's locks; eight GPUs are made up.

    Outside of pytest's own folders, and of TMPDIR: both may be closed to other users.
    """
    above = Path(tempfile.mkdtemp(prefix="leases-", dir="/var/tmp"))
    above.chmod(0o755)
    folder = above / "locks"
    folder.mkdir()
    monkeypatch.setenv("PERFGATE_LEASES", str(folder))
    monkeypatch.setenv("PERFGATE_FAKE_GPUS", "8")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    yield folder
    shutil.rmtree(above)


@pytest.fixture
def pool(locks: Path) -> GpuPool:
    return GpuPool.of_machine()


class Process:
    """A program of `programs/`, and the lines that it says."""

    def __init__(self, name: str, *arguments: object, env: dict[str, str], **more) -> None:
        argv = [sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **more}
        self.popen = subprocess.Popen(argv, text=True, env={**os.environ, **env}, **pipes)

    def says(self, beginning: str) -> str:
        """The next line; it begins as told."""
        line = self.popen.stdout.readline().strip()
        assert line.startswith(beginning), f"{line!r}, not {beginning!r}"
        return line

    def let_go(self) -> None:
        self.popen.stdin.close()
        assert self.popen.wait(30) == 0

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


@pytest.fixture
def start(locks: Path):
    """Starts a program; it is gone when the test ends."""
    with ExitStack() as stack:

        def start(name: str, *arguments: object, env=(), **more) -> Process:
            process = Process(name, *arguments, env=dict(env), **more)
            stack.enter_context(process.popen)
            stack.callback(process.popen.kill)
            return process

        yield start


@pytest.fixture
def install(install, locks: Path, monkeypatch):
    """Puts a driver with GPUs of its own in the place of pynvml; no GPU is made up."""
    monkeypatch.delenv("PERFGATE_FAKE_GPUS")
    return install
