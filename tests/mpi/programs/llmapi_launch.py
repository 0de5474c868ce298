"""A stand-in for trtllm-llmapi-launch: rank 0 runs the program, the others work for it."""

import os
import signal
import subprocess
import sys
import time

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
print(f"rank {rank} on {os.uname().nodename}", flush=True)
if rank == 0:
    sys.exit(subprocess.call(sys.argv[1:]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if os.environ.get("PERFGATE_TEST_ENDS"):
    sys.exit(0)
time.sleep(3600)
