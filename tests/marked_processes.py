"""Processes that carry the marks of jobs, and which of them a job's clean up ends."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping


def ended_by(
    clean_up: tuple[str, ...], job: Mapping[str, str], marks: Mapping[str, Mapping[str, str]]
) -> set[str]:
    """The names of the marked processes that `clean_up` ends with SIGTERM in the environment `job`.

    Args:
        clean_up: the command.
        job: what its service puts into the job's environment.
        marks: by a name, what a process has in its environment.
    """
    clean = {name: value for name, value in os.environ.items() if name != "PERFGATE_LAUNCH"}
    started = {
        name: subprocess.Popen(("sleep", "600"), env={**clean, **mark})
        for name, mark in marks.items()
    }
    try:
        time.sleep(0.1)  # until the environment is that of sleep
        subprocess.run(clean_up, env={**clean, **job}, check=True, timeout=60)
        codes = {name: process.poll() for name, process in started.items()}
        ended = {name: code for name, code in codes.items() if code is not None}
        assert set(ended.values()) <= {-signal.SIGTERM}
        return set(ended)
    finally:
        for process in started.values():
            process.kill()
            process.wait()
