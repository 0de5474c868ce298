"""Put what no session would write into a folder of locks: planting.py FOLDER USER KIND...

It becomes USER first. Holds the locks of the files that it wrote until standard input ends.
"""

import fcntl
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

LOCKED: list[int] = []

NAMESPACE = str(Path("/proc/self/ns/pid").readlink())
REQUEST = {"keys": [], "alone": True, "words": "everything"}
HOLDER = {"pid": 1, "began": 1, "namespace": NAMESPACE, "user": "u", "run": "r", "scenario": "s"}


def ticket(folder: Path, number: int) -> Path:
    return folder / f"fake-waiting-{number:09d}.lock"


def locked(file: Path, text: bytes) -> None:
    file.write_bytes(text)
    file.chmod(0o666)
    LOCKED.append(os.open(file, os.O_RDWR))
    fcntl.flock(LOCKED[-1], fcntl.LOCK_EX)


def holder(**changes: object) -> bytes:
    since = {"since": "2026-11-21T09:00:00+00:00"}
    plain = json.dumps({"request": REQUEST, "holder": {**HOLDER, **since, **changes}})
    return plain.replace("Infinity", "1e999").encode()


def gigabytes(folder: Path) -> None:
    locked(ticket(folder, 15), b"")
    os.truncate(ticket(folder, 15), 2**33)


def private(folder: Path) -> None:
    ticket(folder, 7).touch(0o600)


def linked(folder: Path) -> None:
    ticket(folder, 3).symlink_to("/etc/passwd")


def in_a_socket(folder: Path) -> None:
    handle = os.open(folder, os.O_PATH)  # the path of a socket has 107 bytes
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"/proc/self/fd/{handle}/{ticket(folder, 6).name}")
    os.close(handle)


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": lambda folder: os.mkfifo(ticket(folder, 1)),
    "folder": lambda folder: ticket(folder, 2).mkdir(),
    "link": linked,
    "link to itself": lambda folder: ticket(folder, 4).symlink_to(ticket(folder, 4).name),
    "link to a device": lambda folder: ticket(folder, 5).symlink_to("/dev/zero"),
    "socket": in_a_socket,
    "private": private,
    "superscript": lambda folder: (folder / "fake-waiting-²²².lock").touch(),
    "not UTF-8": lambda folder: (folder / "fake-waiting-\udcff.lock").mkdir(),
    "escape": lambda folder: (folder / "fake-waiting-\x1b[2J\n1.lock").touch(),
    "long number": lambda folder: (folder / f"fake-waiting-{'9' * 230}.lock").touch(),
    "last number": lambda folder: (folder / f"fake-waiting-{'9' * 15}.lock").touch(0o600),
    "folder of a GPU": lambda folder: (folder / "fake-gpu-x.lock").mkdir(),
    "draft": lambda folder: (folder / ".fake-waiting-x").mkdir(),
    "brackets": lambda folder: locked(ticket(folder, 8), b"[" * 50_000),
    "brackets in a lock": lambda folder: locked(folder / "fake-gpu-7.lock", b"[" * 50_000),
    "endless": lambda folder: locked(ticket(folder, 9), holder(pid=float("inf"))),
    "digits": lambda folder: locked(ticket(folder, 10), b'{"request": ' + b"9" * 5000 + b"}"),
    "large number": lambda folder: locked(ticket(folder, 11), holder(pid=10**19)),
    "negative number": lambda folder: locked(ticket(folder, 12), holder(pid=-1)),
    "no JSON": lambda folder: locked(ticket(folder, 13), b"\xff\x00"),
    "no object": lambda folder: locked(ticket(folder, 14), b"[]"),
    "gigabytes": gigabytes,
}


def main() -> None:
    folder, user = Path(sys.argv[1]), int(sys.argv[2])
    if user != os.geteuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    os.umask(0)
    for kind in sys.argv[3:] or KINDS:
        KINDS[kind](folder)
    print("planted", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
