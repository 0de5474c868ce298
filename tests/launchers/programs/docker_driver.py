"""Stands for pytest: has a container started, says so on standard output, is killed.

Argument: a JSON object {"image", "folder", "argv", "then"}.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from building import SCENARIO

from perfgate.core.command import Command
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.docker import launcher as docker
from perfgate.launchers.site import DockerSite
from perfgate.scenarios.scenario import Hardware

task = json.loads(sys.argv[1])
docker.POLITE_S = 0.5
folder = Path(task["folder"])
site = DockerSite(image=task["image"], user=None, cache=None, pass_on=())
scenario = replace(SCENARIO, hardware=Hardware("none", 0, 1))
request = PlacementRequest(scenario, folder, 600, lambda text: print(text, flush=True))
with docker.DockerLauncher(site).placed(request) as placement:
    print("placed", flush=True)
    with placement.start(Command(tuple(task["argv"])), folder, "server") as job:
        print("started", flush=True)
        if task["then"] == "fail":
            raise AssertionError("a test failed")
        job.wait()
