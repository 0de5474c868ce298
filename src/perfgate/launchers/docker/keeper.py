"""Remove a fresh start's containers when perfgate is gone, and can no longer do so itself.

A program of its own, run by path (``python -I -S docker_keeper.py CALL``): standard library only,
imported by nobody. A container is a child of Docker's daemon and of nobody here: what ends
`docker run` for certain, SIGKILL, leaves it running. So this waits under wardens, which send
SIGTERM when perfgate ends, in whatever way; perfgate itself kills it, having removed the
containers. Should it be killed together with perfgate, the next run removes what was left.

CALL is JSON: ``{"docker": argv, "label": text, "polite_s": seconds, "settle_s": seconds}``.
"""

import json
import signal
import subprocess
import sys
import time
from typing import Any

ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
CALL_S = 30.0
EVERY_S = 0.3
ASKED_S = 1.0  # the wardens find a new process, and ask it to end, sooner than that


def main(call: dict[str, Any]) -> int:
    """Wait for perfgate's end, then remove until nothing has been there for a while."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    print("keeps", flush=True)
    signal.sigwait(ENDING)
    # `docker run` has been asked to end, too, and hands that on: programs may end by themselves.
    polite_until = time.monotonic() + call["polite_s"]
    seen_at = time.monotonic()
    while time.monotonic() < seen_at + call["settle_s"]:
        names = listed(call["docker"], call["label"])
        if names is None or names:
            seen_at = time.monotonic()
        if names and time.monotonic() >= polite_until:
            run([*call["docker"], "rm", "--force", "--volumes", *names])
        time.sleep(EVERY_S)
    return 0


def listed(docker: list[str], label: str) -> list[str] | None:
    """Names of the containers with the label, in whatever state; None: Docker does not answer."""
    told = run([*docker, "ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}"])
    return None if told is None else told.split()


def run(argv: list[str]) -> str | None:
    """What a program of Docker prints; None: it failed."""
    try:
        done = subprocess.run(
            argv,
            preexec_fn=take_the_signal,  # safe here: there is one thread only
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=CALL_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def take_the_signal() -> None:
    """In the new process: have the wardens' SIGTERM, which comes once, before Docker starts.

    Docker's program would end by it even where it is ignored, as Go programs do.
    """
    signal.sigtimedwait(ENDING, ASKED_S)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
