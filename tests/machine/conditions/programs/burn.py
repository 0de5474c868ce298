"""Use one core for some seconds of CPU time, then say how many: burn.py SECONDS [FILE].

With FILE it first becomes a stranger: a process whose parent has ended, in a session of its own.
It writes its pid there. The kernel ends it for certain soon after.
"""

import os
import resource
import sys
import time
from pathlib import Path

seconds = float(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 2, int(seconds) + 3))
if len(sys.argv) > 2:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    file = Path(sys.argv[2])
    part = file.with_suffix(".part")
    part.write_text(str(os.getpid()))
    part.rename(file)
while time.process_time() < seconds:
    pass
print(time.process_time(), flush=True)
