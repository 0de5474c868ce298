"""Makes the stand-in's server what engines are: a parent that waits, a child that serves, shared
memory between them that outlives a SIGKILL. For tests alone.

A plugin for pytest where it is imported; as a program, what the plugin puts before the server.
PERFGATE_STANDIN_MEMORY names the memory. PERFGATE_STANDIN_FAULT puts in a fault: port-stolen (the
first start's port gets another listener right before its server has it), port-stolen-always,
log-fills-disk (PERFGATE_STANDIN_DISK is a tmpfs, which shrinks and is filled).
"""

import mmap
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

FAULT = os.environ.get("PERFGATE_STANDIN_FAULT", "")


def share() -> mmap.mmap:
    """A file in /dev/shm that nobody will remove, mapped."""
    name = f"/dev/shm/{os.environ['PERFGATE_STANDIN_MEMORY']}{os.getpid()}"
    file = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    os.ftruncate(file, 4096)
    memory = mmap.mmap(file, 4096)
    os.close(file)
    return memory


def fill_the_disk() -> None:
    """Log for ever, as an engine in trouble does; a line that is not written does not stop it."""
    port = int(sys.argv[sys.argv.index("--port") + 1])
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)) != 0:
            signal.sigtimedwait([], 0.05)
    smaller = ("mount", "-o", "remount,size=512k", os.environ["PERFGATE_STANDIN_DISK"])
    subprocess.run(smaller, check=True)
    line = b"stand-in: [W] the same warning again, and again, and again" * 20 + b"\n"
    while True:
        try:
            os.write(1, line)
        except OSError:
            signal.sigtimedwait([], 0.1)


if __name__ == "__main__":
    kept = share()
    child = os.fork()
    if child == 0:
        if FAULT == "log-fills-disk":
            threading.Thread(target=fill_the_disk, daemon=True).start()
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
else:
    from dataclasses import replace

    import standin

    from perfgate.core.programs.command import Command
    from perfgate.core.programs.locations import Locations
    from perfgate.engines.base import Endpoint, EngineBuild
    from perfgate.scenarios.scenario import Scenario

    _served = standin.StandinEngine.serve
    _thieves: list[socket.socket] = []

    def _serve(
        self: standin.StandinEngine,
        scenario: Scenario,
        build: EngineBuild,
        endpoint: Endpoint,
        locations: Locations,
    ) -> Command:
        command = _served(self, scenario, build, endpoint, locations)
        if FAULT == "port-stolen-always" or (FAULT == "port-stolen" and not _thieves):
            _thieves.append(socket.create_server((endpoint.host, endpoint.port)))
            # It is ended at once, perhaps between making its memory and mapping it, and then nobody
            # can know whose that is (docs/how-to/troubleshooting.md); so this one has none.
            return command
        python, *server = command.argv
        return replace(command, argv=(python, str(Path(__file__).resolve()), *server))

    standin.StandinEngine.serve = _serve  # type: ignore[method-assign]
