"""Stands for pytest: starts jobs through LocalLauncher, says so on standard output, is killed.

Argument: a JSON object {"folder", "roll", "jobs": {name: argv}, "then", "grace_s"}.
"""

import json
import os
import sys
import time
from pathlib import Path

from perfgate.core.command import Command
from perfgate.launchers.local.launcher import LocalLauncher

task = json.loads(sys.argv[1])
launcher = LocalLauncher(orphan_grace_s=task["grace_s"])
print("starting", flush=True)
jobs = [
    launcher.start(Command(tuple(argv)), Path(task["folder"]), name)
    for name, argv in task["jobs"].items()
]
print("started", flush=True)
if task["then"] == "fork" and os.fork() == 0:
    time.sleep(600)  # holds a copy of the control pipe, as multiprocessing's children do
    os._exit(0)
elif task["then"] == "stop":
    while not Path(task["roll"], "program").exists():
        time.sleep(0.01)
    jobs[0].stop(600)
elif task["then"] == "fail":
    with jobs[0]:
        raise AssertionError("a test failed")
elif task["then"] == "forget":
    sys.exit(0)
elif task["then"] == "exit at once":
    os._exit(0)
for job in jobs:
    job.wait()
