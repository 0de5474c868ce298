"""A stand-in for a load client and for an evaluator: asks the stand-in server for its speed.

PERFGATE_STANDIN_FAULT puts in a fault: failed-requests, zeros, cut, no-result, client-hangs,
client-hangs-once (on the first start), client-fails, as-the-scenario (the one that the scenario is
named after). It hangs, too, for the scenarios that
PERFGATE_STANDIN_HANGS names. takes-time is none: the load then lasts long
enough for shares of the CPU to mean something.
"""

import argparse
import json
import os
import random
import sys
import time
import urllib.request
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--requests", type=int, default=0)
parser.add_argument("--questions", type=int, default=0)
parser.add_argument("--temperature", type=float, default=0.0)
arguments = parser.parse_args()
fault = os.environ.get("PERFGATE_STANDIN_FAULT", "")
if fault == "as-the-scenario":
    fault = os.environ["PERFGATE_SCENARIO"]

try:
    with urllib.request.urlopen(arguments.url + "/speed") as answer:
        speed = json.load(answer)["speed"]
except OSError as error:
    print(f"stand-in client: {error}", file=sys.stderr)
    time.sleep(5 if fault == "die-on-load" else 0)
    sys.exit(1)

once = fault == "client-hangs-once" and os.environ.get("PERFGATE_START") == "1"
there = os.environ.get("PERFGATE_SCENARIO") in os.environ.get("PERFGATE_STANDIN_HANGS", "").split()
if fault == "client-hangs" or once or there:
    time.sleep(3600)
if fault == "takes-time":
    time.sleep(1.0)
if fault == "client-fails":
    print("stand-in client: it went wrong", file=sys.stderr)
    sys.exit(1)
if fault == "no-result":
    sys.exit(0)

if arguments.questions:
    share = {0.0: 0.8, 2.0: 0.4}.get(arguments.temperature, 0.05)  # what is hotter is broken
    chance = random.Random(4)
    result: dict[str, object] = {
        "answers": {f"q{n}": chance.random() < share for n in range(arguments.questions)}
    }
else:
    result = {
        "completed": arguments.requests - (1 if fault == "failed-requests" else 0),
        "output_throughput": 0.0 if fault == "zeros" else speed,
    }
text = json.dumps(result)
arguments.out.write_text(text[: len(text) // 2] if fault == "cut" else text)
