"""A program of ours that holds the slider at a level until it is ended, or for a moment.

boosting.py LEVEL SECONDS [leased]: with the last word it holds a lease of all GPUs meanwhile.
"""

import sys
import time
from contextlib import nullcontext

from perfgate.machine.leases import GpuPool
from perfgate.machine.vboost.setting import boosted

if sys.argv[3:] == ["leased"]:
    pool = GpuPool.of_machine()
    lease = pool.lease(len(pool.gpus), whole=True, run="run", wait_s=0, tell=print)
else:
    lease = nullcontext()
with lease, boosted(int(sys.argv[1])):
    print("boosted", flush=True)
    time.sleep(float(sys.argv[2]))
print("over", flush=True)
