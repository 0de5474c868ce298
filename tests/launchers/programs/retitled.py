"""Its child changes name, title and process group, as engine workers do."""

import ctypes
import os
import signal

from roll import sign

if os.fork() == 0:
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(15, b"VLLM::Worker", 0, 0, 0)  # PR_SET_NAME
    try:
        from setproctitle import setproctitle
    except ImportError:
        pass
    else:
        setproctitle("VLLM::Worker_TP0")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sign("worker")
else:
    sign("program")
while True:
    signal.pause()
