"""Hold the hosts and run ranks there that do not want to end: ``holding.py FOLDER``."""

import os
import sys
import time
from pathlib import Path

from mpi_hosts import placed, python, two_hosts

from perfgate.core.programs.locations import Locations

os.environ["PERFGATE_PROGRAM_TRTLLM_LLMAPI_LAUNCH"] = "env"
scenario = two_hosts()
folder = Path(sys.argv[1])
stubborn = python(
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('rank', os.environ['OMPI_COMM_WORLD_RANK'], flush=True)\n"
    "time.sleep(3600)"
)
with placed(folder, scenario) as placement:
    command = placement.launched(stubborn, Locations())
    with placement.start(command, folder, "server") as job:
        while len(job.stdout.read_text().splitlines()) < 4:
            time.sleep(0.05)
        print("holds", flush=True)
        time.sleep(3600)
