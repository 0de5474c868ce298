"""Stands for pytest: starts jobs through LocalLauncher, says so on standard output, is killed.

Arguments: the folder of the jobs, what is done then, a JSON object {name: argv}.
"""

import json
import os
import sys
import time
from pathlib import Path

from perfgate.core.programs.command import Command
from perfgate.launchers.local.launcher import LocalLauncher

_, folder, then, text = sys.argv
calls = json.loads(text)
print("starting", flush=True)
jobs = [
    LocalLauncher(orphan_grace_s=0.3).start(Command(tuple(argv)), Path(folder), name)
    for name, argv in calls.items()
]
print("started", flush=True)
if then == "fork" and os.fork() == 0:
    time.sleep(600)  # holds a copy of the control pipe, as multiprocessing's children do
    os._exit(0)
elif then == "stop":
    (*_, roll), *_ = calls.values()
    while not Path(roll, "program").exists():
        time.sleep(0.01)
    jobs[0].stop(600)
elif then == "fail":
    with jobs[0]:
        raise AssertionError("a test failed")
elif then == "forget":
    sys.exit(0)
elif then == "exit at once":
    os._exit(0)
for job in jobs:
    job.wait()
