"""As a campaign does: lease, start a program through the local launcher, hold: measuring.py FOLDER.

The program (beating.py) ignores SIGTERM and notes that it is alive until it is killed.
"""

import sys
import time
from pathlib import Path

from perfgate.core.programs.command import Command
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.machine.leases import GpuPool

folder = Path(sys.argv[1])
launcher = LocalLauncher(orphan_grace_s=1.0)
leased = GpuPool.of_machine().lease(4, whole=False, run="20261121-090000-1", wait_s=30, tell=list)
with leased as lease:
    beating = Path(__file__).with_name("beating.py")
    command = Command((sys.executable, str(beating), str(folder / "beats")), env=lease.env)
    with launcher.start(command, folder / "job", "server") as job:
        while not (folder / "beats").exists():
            time.sleep(0.01)
        print("measuring", job.pid, *(one.pid for one in job._wardens), flush=True)
        sys.stdin.read()
        job.stop(0.2)
