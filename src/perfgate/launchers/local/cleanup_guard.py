"""Clean up what perfgate has elsewhere when perfgate is gone, and can no longer do so itself.

A program of its own, run by path (``python -I -S cleanup_guard.py TASK``): standard library only,
imported by nobody. What runs on other nodes or under a daemon is no child of perfgate, so that no
warden ends it. This runs under wardens, which send SIGTERM when perfgate ends, in whatever way;
perfgate itself kills it, having cleaned up. Should both be killed together, then the next run
cleans up, or the job that gets no more signs of life ends by itself.

TASK is JSON: ``{"guards": "containers", "hosts", "job" or "machine", …}``; what else it has are the
arguments of that function.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
CALL_S = 60.0  # sbatch and scancel give up by themselves before, if no controller answers
DOCKER_S = 30.0
TO_DIE_S = 5.0
EVERY_S = 0.3
ASKED_S = 1.0  # the wardens find a new process, and ask it to end, sooner than that


def main(task: dict[str, Any]) -> int:
    """Wait for perfgate's end, then clean up; the exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    guard: Callable[..., int] = globals()[f"guard_{task.pop('guards')}"]
    return guard(**task)


def guard_containers(docker: list[str], label: str, polite_s: float, settle_s: float) -> int:
    """Remove the containers with the label, until none has been there for `settle_s`."""
    wait_for_end()
    # `docker run` has been asked to end, too, and hands that on: programs may end by themselves.
    polite_until = time.monotonic() + polite_s
    seen_at = time.monotonic()
    request = [*docker, "ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}"]
    while time.monotonic() < seen_at + settle_s:
        names = told_by_docker(request)
        if names != "":
            seen_at = time.monotonic()
        if names and time.monotonic() >= polite_until:
            told_by_docker([*docker, "rm", "--force", "--volumes", *names.split()])
        time.sleep(EVERY_S)
    return 0


def guard_hosts(calls: list[list[str]], after_s: float, tries: int, every_s: float) -> int:
    """Make the calls until each has succeeded, `tries` times at most; 0 if all have.

    mpirun gets SIGTERM when this does, and ends its ranks within `after_s`. What is left of them
    then, since mpirun or a host's orted was killed too, or since they would not end, ends here.
    """
    wait_for_end()
    time.sleep(after_s)
    for _ in range(tries):
        calls = failed(calls)
        if not calls:
            return 0
        time.sleep(every_s)
    return 1


def guard_job(sbatch: list[str], beat: str, every_s: float) -> int:
    """Submit a Slurm job, change the file `beat` for as long as perfgate lives, cancel the job.

    One line of JSON goes to standard output: ``{"job": "12"}``. The exit status is sbatch's if it
    refuses.
    """
    change(beat, 0)
    done = called(sbatch, CALL_S, ignore_the_signal, stdout=subprocess.PIPE)
    if done.returncode != 0:
        return done.returncode
    job = done.stdout.split(";")[0].strip()  # a federation's name follows the semicolon
    try:
        print(json.dumps({"job": job}), flush=True)
        for count in itertools.count(1):
            if signal.sigtimedwait(ENDING, every_s) is not None:
                break
            change(beat, count)
    finally:
        called(["scancel", job], CALL_S, ignore_the_signal)
    return 0


def guard_machine(calls: list[list[str]], call_s: float) -> int:
    """Make the calls in order, each whatever became of those before; 0 if all have succeeded."""
    wait_for_end()
    failures = 0
    for argv in calls:
        try:
            done = called(argv, call_s, outlast_the_signal)
        except (OSError, subprocess.SubprocessError) as error:
            print(error, file=sys.stderr, flush=True)
            failures += 1
        else:
            failures += done.returncode != 0
    return int(failures > 0)


def wait_for_end() -> None:
    """Return when perfgate has ended, or asks for it."""
    print("guards", flush=True)
    signal.sigwait(ENDING)


def told_by_docker(argv: list[str]) -> str | None:
    """What Docker's program prints; None: it failed."""
    try:
        done = called(argv, DOCKER_S, take_the_signal, stdout=subprocess.PIPE)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def failed(calls: list[list[str]]) -> list[list[str]]:
    """Make the calls at once; those that failed."""
    begun = [
        (argv, subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=ignore_the_signal))
        for argv in calls
    ]
    deadline = time.monotonic() + CALL_S
    for _, program in begun:
        try:
            program.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            killed(program)
    return [argv for argv, program in begun if program.returncode != 0]


def called(
    argv: list[str], seconds: float, prepare: Callable[[], None], **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end. `prepare`, in it, is safe here: there is one thread only."""
    program = subprocess.Popen(
        argv, preexec_fn=prepare, stdin=subprocess.DEVNULL, text=True, **options
    )
    try:
        stdout, _ = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        killed(program)
        raise
    return subprocess.CompletedProcess(argv, program.returncode, stdout)


def killed(program: "subprocess.Popen[Any]") -> None:
    """Kill a program; one that hangs in its driver is not waited for."""
    program.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(TO_DIE_S)


def ignore_the_signal() -> None:
    """In a new process: go on whatever the wardens send, as they send it to all that is here.

    Else a SIGTERM could end sbatch after it has submitted and before it has told the number.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def take_the_signal() -> None:
    """In a new process: have the wardens' SIGTERM, which comes once, before Docker starts.

    Docker's program would end by it even where it is ignored, as Go programs do.
    """
    signal.sigtimedwait(ENDING, ASKED_S)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def outlast_the_signal() -> None:
    """In a new process: have the wardens' SIGTERM before it starts, and ignore it in its children.

    The wardens send it to each process once, and sudo would hand it on.
    """
    take_the_signal()
    ignore_the_signal()


def change(file: str, count: int) -> None:
    """Change the file, whole: the job must never read half of it."""
    part = f"{file}.part"
    with open(part, "w") as text:  # noqa: PTH123 - pathlib would double the start
        text.write(f"{count}\n")
    os.replace(part, file)  # noqa: PTH105


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
