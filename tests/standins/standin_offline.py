"""A stand-in for an offline benchmark and its dataset tool: made-up speed. For tests alone.

Both count their calls in a file beside PERFGATE_STANDIN_COUNTER. PERFGATE_STANDIN_FAULT puts in a
fault: offline-oom, offline-hangs.
"""

import json
import os
import sys
import time
from pathlib import Path

verb, argument = sys.argv[1:]
fault = os.environ.get("PERFGATE_STANDIN_FAULT", "")
counter = Path(os.environ["PERFGATE_STANDIN_COUNTER"] + f".{verb}")
counter.write_text(str(int(counter.read_text()) + 1 if counter.exists() else 1))

if verb == "prepare":
    for number in range(int(argument)):
        print(json.dumps({"task_id": number}))
    sys.exit(0)

if fault == "offline-oom":
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    sys.exit(1)
if fault == "offline-hangs":
    time.sleep(3600)
lines = len(Path(argument).read_text().splitlines())
marks = {name: value for name, value in os.environ.items() if name.startswith("PERFGATE_S")}
Path("result.json").write_text(
    json.dumps({"output_throughput": 100.0 + lines, "completed": lines, "marks": marks})
)
