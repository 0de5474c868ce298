"""Stands for pytest: has a container started, says so on standard output, is killed.

Arguments: the start's folder, the program in the container, what is done then.
"""

import sys
from pathlib import Path

from docker_host import CPU, SITE

from perfgate.core.programs.command import Command
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.docker import launcher as docker

_, at, program, then = sys.argv
folder = Path(at)
docker.POLITE_S = 0.5
request = PlacementRequest(CPU, folder, 600, lambda text: print(text, flush=True))
with (
    docker.DockerLauncher(SITE).placed(request) as placement,
    placement.start(Command((program,)), folder, "server") as job,
):
    print("started", flush=True)
    if then == "fail":
        raise AssertionError("a test failed")
    job.wait()
