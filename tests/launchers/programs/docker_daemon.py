"""A stand-in for Docker's daemon: containers are processes of its own, without any isolation.

docker_daemon.py FOLDER. The folder has the socket, ``runs.jsonl`` (what was asked of `run`), and
``images/NAME/bin`` for each image, with ``/`` and ``:`` in names as ``_``: programs that only a
container finds. Files in it make trouble: ``unknown-gpus``, ``full`` (killed containers had no
memory), ``slow`` (seconds until a container is there), ``hangs`` (see `docker`).
``registry/NAME`` is an image that can be pulled.

A container gets the variables that it is given and no others, as with Docker; its working folder
must be mounted, since it would not find its files else.
"""

import array
import contextlib
import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from docker_engine import serve_api

STATE = Path(sys.argv[1])
LOCK = threading.RLock()
CONTAINERS = {}
REFUSED = "Error response from daemon: "


def image_folder(name):
    return STATE / "images" / re.sub("[/:]", "_", name)


def shaped(shape, values):
    """A Go template with nothing but fields."""
    text = re.sub(r"\{\{\.Label \"(.*?)\"\}\}", lambda m: values["Labels"].get(m[1], ""), shape)
    return re.sub(r"\{\{\.([\w.]+)\}\}", lambda m: str(values[m[1]]), text)


class Container:
    def __init__(self, question, streams):
        given = question["options"]
        self.name = given["name"][0]
        self.labels = dict(one.split("=", 1) for one in given.get("label", []))
        self.id = uuid.uuid4().hex * 2
        self.ended = threading.Event()
        image = image_folder(question["image"])
        env = {"PATH": f"{image / 'bin'}:/usr/bin:/bin", "HOME": "/root", **question["env"]}
        if (image / "env").exists():
            env = {**dict(one.split("=", 1) for one in (image / "env").read_text().split()), **env}
        argv = question["argv"]
        if "entrypoint" in given:
            argv = [*given["entrypoint"], *argv]
        else:
            os.write(streams[0], b"== the image greets ==\n")
        found = shutil.which(argv[0], path=env["PATH"])
        if found is None:
            raise FileNotFoundError(argv[0])
        self.process = subprocess.Popen(
            [found, *argv[1:]],
            env=env,
            cwd=given.get("workdir", ["/"])[0],
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            start_new_session=True,
        )

    @property
    def values(self):
        running = not self.ended.is_set()
        return {
            "Names": self.name,
            "Labels": self.labels,
            "Id": self.id,
            "State.Pid": self.process.pid if running else 0,
            "State.Running": str(running).lower(),
        }

    def signal(self, number):
        try:
            self.process.send_signal(number)
        except ProcessLookupError:
            return

    def wait(self):
        """The status as Docker tells it; the container is gone then."""
        status = self.process.wait()
        with contextlib.suppress(ProcessLookupError):  # with the first process all others end
            os.killpg(self.process.pid, signal.SIGKILL)
        with LOCK:
            if (STATE / "full").exists() and status == -signal.SIGKILL:
                (STATE / f"oom-{self.name}").touch()
            CONTAINERS.pop(self.name, None)
        self.ended.set()
        return 128 - status if status < 0 else status


def refuse(question):
    """Why Docker would not run this; empty: it would."""
    given = question["options"]
    if given["name"][0] in CONTAINERS:
        return f'Conflict. The container name "/{given["name"][0]}" is already in use', 125
    if not image_folder(question["image"]).is_dir():
        return f"No such image: {question['image']}", 125
    if "gpus" in given:
        (request,) = csv.reader(given["gpus"])
        known = [one.startswith(("device=", "all")) or one.isdigit() for one in request]
        if not all(known):
            return f"invalid argument {given['gpus'][0]} for --gpus", 125
        if (STATE / "unknown-gpus").exists():
            return 'could not select device driver "" with capabilities: [[gpu]]', 125
    for mount in given.get("volume", []):
        if not Path(mount.split(":")[0]).exists():
            return f"bind source path does not exist: {mount}", 125
    network = given.get("network", ["bridge"])[0]
    if network.startswith("container:") and network.partition(":")[2] not in CONTAINERS:
        return f"No such container: {network.partition(':')[2]}", 125
    workdir = given.get("workdir", [None])[0]
    targets = [Path(one.split(":")[1]) for one in given.get("volume", [])]
    if workdir and not any(Path(workdir).is_relative_to(one) for one in targets):
        return f"the working folder {workdir} is not mounted", 125
    return "", 0


def note(question):
    with LOCK, (STATE / "runs.jsonl").open("a") as log:
        log.write(json.dumps(question) + "\n")


def dawdle():
    if (STATE / "slow").exists():
        time.sleep(float((STATE / "slow").read_text()))


def run(question, line, streams):
    note(question)
    dawdle()
    try:
        with LOCK:
            why, status = refuse(question)
            if not why:
                container = Container(question, streams)
                CONTAINERS[container.name] = container
    except FileNotFoundError as error:
        why = f'failed to create task for container: exec: "{error}": '
        why, status = why + "executable file not found in $PATH: unknown", 127
    for stream in streams:
        os.close(stream)
    if why:
        tell(line, {"status": status, "err": REFUSED + why})
        return
    tell(line, {"started": container.id})
    tell(line, {"status": container.wait()})


def tell(line, answer):
    try:
        line.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        return  # it was killed


def listed(words):
    request = [words[at + 1] for at, word in enumerate(words) if word == "--filter"]
    shape = words[words.index("--format") + 1]
    labels = [one.removeprefix("label=").split("=", 1) for one in request]
    with LOCK:
        found = [
            one
            for one in CONTAINERS.values()
            if all(one.labels.get(name) == value for name, value in labels)
        ]
    return {"out": "".join(shaped(shape, one.values) + "\n" for one in found), "status": 0}


def removed(words):
    error = ""
    for name in [word for word in words if not word.startswith("-")]:
        with LOCK:
            container = CONTAINERS.get(name)
        if container is None:
            error += f"{REFUSED}No such container: {name}\n"
            continue
        container.signal(signal.SIGKILL)
        container.ended.wait(20)
    return {"err": error, "status": 1 if error else 0}


def inspected(words):
    with LOCK:
        container = CONTAINERS.get(words[-1])
    if container is None:
        return {"err": f"{REFUSED}No such container: {words[-1]}\n", "status": 1}
    return {"out": shaped(words[words.index("--format") + 1], container.values) + "\n", "status": 0}


def image(words):
    name = words[-1]
    if not image_folder(name).is_dir():
        return {"out": "[]\n", "err": f"{REFUSED}No such image: {name}\n", "status": 1}
    found = [{"Id": "sha256:" + "ab" * 32, "RepoDigests": [f"{name}@sha256:" + "cd" * 32]}]
    return {"out": json.dumps(found), "status": 0}


def pulled(words):
    name = re.sub("[/:]", "_", words[-1])
    if not (STATE / "registry" / name).is_dir():
        error = f"{REFUSED}manifest for {words[-1]} not found: manifest unknown: manifest unknown\n"
        return {"err": error, "status": 1}
    time.sleep(float((STATE / "registry" / name / "seconds").read_text()))
    shutil.copytree(STATE / "registry" / name, STATE / "images" / name)
    return {"out": "0123456789ab: Pulling fs layer\n0123456789ab: Pull complete\n", "status": 0}


def events(words):
    (name,) = [word.partition("=")[2] for word in words if word.startswith("container=")]
    return {"out": "oom\n" if (STATE / f"oom-{name}").exists() else "", "status": 0}


def version(words):
    return {"out": shaped(words[-1], {"Server.Version": "99.0"}) + "\n", "status": 0}


def relabelled(words):
    name, label, value = words
    with LOCK:
        CONTAINERS[name].labels[label] = value
    return {"status": 0}


VERBS = {
    "relabel": relabelled,
    "ps": listed,
    "rm": removed,
    "container": inspected,
    "image": image,
    "pull": pulled,
    "events": events,
    "version": version,
}


def serve(line):
    with line:
        text, streams = b"", array.array("i")
        while not text.endswith(b"\n"):
            part, ancillary, _, _ = line.recvmsg(1 << 16, socket.CMSG_LEN(8))
            if not part:
                return
            text += part
            for _, _, data in ancillary:
                streams.frombytes(data)
        question = json.loads(text)
        if question["verb"] == "run":
            run(question, line, list(streams))
        elif question["verb"] == "kill":
            with LOCK:
                container = CONTAINERS.get(question["name"])
            if container is not None:
                container.signal(question["signal"])
        else:
            tell(line, VERBS[question["verb"]](question["words"]))


def end(*_):
    for container in [*CONTAINERS.values()]:
        try:
            os.killpg(container.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os._exit(0)


def end_with_the_test():
    """The test holds the other end of standard input."""
    sys.stdin.read()
    end()


signal.signal(signal.SIGTERM, end)
threading.Thread(target=end_with_the_test, daemon=True).start()
serve_api(
    {
        **globals(),
        "log": note,
        "slow": dawdle,
        "signal_of": lambda name: int(name) if name.isdigit() else signal.Signals[f"SIG{name}"],
    },
    str(STATE / "engine"),
)
server = socket.socket(socket.AF_UNIX)
server.bind(str(STATE / "s"))
server.listen(64)
print("serves", flush=True)
while True:
    accepted, _ = server.accept()
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()
