"""Write the monotonic clock into a file every 10 ms, and ignore SIGTERM: beating.py FILE."""

import os
import signal
import sys
import time
from pathlib import Path

signal.signal(signal.SIGTERM, signal.SIG_IGN)
beats = Path(sys.argv[1])
ends = time.monotonic() + 60
while time.monotonic() < ends:
    draft = beats.with_suffix(".new")
    draft.write_text(f"{time.monotonic()} {os.environ['CUDA_VISIBLE_DEVICES']}")
    draft.replace(beats)
    time.sleep(0.01)
