"""Submit a Slurm job and keep it for as long as perfgate lives; cancel it when perfgate is gone.

A program of its own, run by path (``python -I -S slurm_keeper.py CALL``): standard library only,
imported by nobody. It runs under the wardens, which send SIGTERM when perfgate ends, in whatever
way. Should it be killed itself, or this machine be switched off, then the file that it keeps
changing changes no more, and the job ends by itself.

CALL is JSON: ``{"sbatch": argv, "beat": file, "every_s": seconds}``. One line of JSON goes to
standard output: ``{"job": "12"}``.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from typing import Any

ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
PROGRAM_S = 60.0  # sbatch and scancel give up by themselves before, if no controller answers


def main(call: dict[str, Any]) -> int:
    """Submit, keep, cancel; the exit status is sbatch's if it refuses."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    beat(call["beat"], 0)
    done = undisturbed(call["sbatch"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return done.returncode
    job = done.stdout.split(";")[0].strip()  # a federation's name follows the semicolon
    try:
        print(json.dumps({"job": job}), flush=True)
        for count in itertools.count(1):
            if signal.sigtimedwait(ENDING, call["every_s"]) is not None:
                break
            beat(call["beat"], count)
    finally:
        undisturbed(["scancel", job])
    return 0


def undisturbed(argv: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program of Slurm to its end, whatever signal all of us get.

    Else a SIGTERM could end sbatch after it has submitted and before it has told the number.
    """

    def ignore() -> None:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)

    # Safe here: there is one thread only.
    return subprocess.run(argv, preexec_fn=ignore, timeout=PROGRAM_S, check=False, **options)


def beat(file: str, count: int) -> None:
    """Change the file, whole: the job must never read half of it."""
    part = f"{file}.part"
    with open(part, "w") as text:  # noqa: PTH123 - pathlib would double the start
        text.write(f"{count}\n")
    os.replace(part, file)  # noqa: PTH105


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
