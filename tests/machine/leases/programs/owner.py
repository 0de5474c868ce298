"""Lease GPUs again and again, and write down from when to when: owner.py LOG SEED ROUNDS WAIT_S.

A line of LOG: pid, GPUs, whole or not, "took" or "gave", and the machine's monotonic clock.
"""

import os
import random
import sys
import time
from pathlib import Path

from perfgate.machine.leases import GpuPool


def note(log: Path, gpus: str, whole: bool, what: str) -> None:
    line = f"{os.getpid()} {gpus} {int(whole)} {what} {time.monotonic():.6f}\n"
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(handle, line.encode())
    os.close(handle)


log, seed, rounds, wait_s = Path(sys.argv[1]), *sys.argv[2:5]
draw = random.Random(int(seed))
pool = GpuPool.of_machine()
for _ in range(int(rounds)):
    count = draw.choice((1, 2, 3, 4, 8))
    whole = count == 8 or draw.random() < 0.1
    with pool.lease(count, whole=whole, run=seed, wait_s=float(wait_s), tell=print) as lease:
        shown = ",".join(gpu.word for gpu in lease.gpus)
        note(log, shown, whole, "took")
        time.sleep(draw.uniform(0.005, 0.2))
        note(log, shown, whole, "gave")
