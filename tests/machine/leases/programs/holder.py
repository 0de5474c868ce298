"""Hold a lease until standard input ends: holder.py COUNT WHOLE WAIT_S [USER [GROUP]].

Lines on standard output: "waiting …", then "got 0,1,2,3", or "error …". With the number of a USER
it becomes that one first, who makes files that nobody else may read (only root can do that).
"""

import os
import sys
from functools import partial

from perfgate.core.errors import PerfgateError
from perfgate.machine.leases import GpuPool

RUN = "20261121-090000-1"
tell = partial(print, flush=True)
count, whole, wait_s = int(sys.argv[1]), sys.argv[2] == "whole", float(sys.argv[3])
if len(sys.argv) > 4:
    os.umask(0o077)
    os.setgroups([int(group) for group in sys.argv[5:]])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))
try:
    with GpuPool.of_machine().lease(count, whole=whole, run=RUN, wait_s=wait_s, tell=tell) as lease:
        print("got", ",".join(gpu.word for gpu in lease.gpus), flush=True)
        sys.stdin.read()
except PerfgateError as error:
    print("error", str(error).replace("\n", " / "), flush=True)
