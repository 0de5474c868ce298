"""A stand-in for Docker's daemon: containers are processes of its own, without any isolation.

docker_daemon.py FOLDER. It answers what of the Docker Engine's API Docker's own program and the
stand-in for that program need, on the socket ``engine``. The folder has ``runs.jsonl`` (what was to
be created), and ``images/NAME/bin`` for each image, with ``/`` and ``:`` in names as ``_``:
programs that only a container finds. Files in it make trouble: ``unknown-gpus``, ``full`` (killed
containers had no memory), ``slow`` (seconds until a container is there), ``hangs`` (it does not
answer). ``registry/NAME`` is an image that can be pulled.

A container gets the variables that it is given and no others, as with Docker; its working folder
must be mounted, since it would not find its files else.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socketserver
import struct
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

STATE = Path(sys.argv[1])
LOCK = threading.RLock()
CONTAINERS = {}  # by name; those that have ended are none
VERSION = {"Version": "99.0", "ApiVersion": "1.50", "MinAPIVersion": "1.24"}
CONSTANT = {"/_ping": "OK", "/version": {**VERSION, "Os": "linux", "Arch": "amd64"}}


def pairs(words):
    return dict(word.split("=", 1) for word in words if "=" in word)


def is_in_trouble(kind):
    return (STATE / kind).exists()


def folder_of(image, place="images"):
    return STATE / place / re.sub("[/:]", "_", image)


class Container:
    """One that was created: what it will run, and where its output goes."""

    def __init__(self, name, body):
        self.name, self.body, self.id = name, body, uuid.uuid4().hex * 2
        self.env = pairs(body["Env"])
        self.streams = {1: os.pipe(), 2: os.pipe()}
        self.process = self.status = None
        self.ended = threading.Event()

    def refusal(self):
        """Why Docker would not start it; empty: it would."""
        host, cwd = self.body["HostConfig"], self.body["WorkingDir"]
        if host["DeviceRequests"] and is_in_trouble("unknown-gpus"):
            return 'could not select device driver "" with capabilities: [[gpu]]'
        mounts = [mount.split(":") for mount in host["Binds"] or []]
        if missing := [mount[0] for mount in mounts if not Path(mount[0]).exists()]:
            return f"bind source path does not exist: {missing[0]}"
        kind, _, other = host["NetworkMode"].partition(":")
        if kind == "container" and other not in CONTAINERS:
            return f"No such container: {other}"
        if cwd and not any(Path(cwd).is_relative_to(mount[1]) for mount in mounts):
            return f"the working folder {cwd} is not mounted"
        return ""

    def start(self):
        """Run its program; the reason why that cannot be, or nothing."""
        if why := self.refusal():
            return why
        image = folder_of(self.body["Image"])
        env = {"PATH": f"{image / 'bin'}:/usr/bin:/bin", "HOME": "/root", **self.env}
        argv = [*(self.body["Entrypoint"] or []), *(self.body["Cmd"] or [])]
        if not self.body["Entrypoint"]:
            os.write(self.streams[1][1], b"== the image greets ==\n")
        program = shutil.which(argv[0], path=env["PATH"])
        if program is None:
            why = f'failed to create task for container: exec: "{argv[0]}"'
            return f"{why}: executable file not found in $PATH: unknown"
        (_, out), (_, err) = self.streams.values()
        files = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
        where = {"cwd": self.body["WorkingDir"] or "/", "env": env, "start_new_session": True}
        self.process = subprocess.Popen([program, *argv[1:]], **files, **where)
        threading.Thread(target=self.wait, daemon=True).start()
        return ""

    def end(self, status):
        """It is gone, with this status."""
        for _, written in self.streams.values():
            os.close(written)
        with LOCK:
            CONTAINERS.pop(self.name, None)
        self.status = status
        self.ended.set()

    def wait(self):
        status = self.process.wait()
        with contextlib.suppress(ProcessLookupError):  # with the first process all others end
            os.killpg(self.process.pid, signal.SIGKILL)
        if is_in_trouble("full") and status == -signal.SIGKILL:
            (STATE / f"oom-{self.name}").touch()
        self.end(128 - status if status < 0 else status)

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)


class Handler(BaseHTTPRequestHandler):
    """One call of the API."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value=None):
        text = b"" if value is None else json.dumps(value).encode()
        self.head(status, Ostype="linux", Api_Version="1.50", Content_Length=str(len(text)))
        if self.command != "HEAD":
            self.wfile.write(text)

    def head(self, status, **headers):
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def refuse(self, status, why):
        self.answer(status, {"message": why})

    def route(self):
        if is_in_trouble("hangs"):
            threading.Event().wait()
        place = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(place.query).items()}
        self.filters = json.loads(self.query.get("filters", "{}"))
        path = re.sub(r"^/v[\d.]+", "", unquote(place.path))
        length = int(self.headers.get("Content-Length") or 0)
        self.body = json.loads(self.rfile.read(length)) if length else {}
        of_one = re.fullmatch(r"/(\w+)/(.+?)(?:/(json|start|attach|wait|kill))?", path)
        whole = getattr(self, path.strip("/_").replace("/", "_"), None)
        if path in CONSTANT:
            self.answer(200, CONSTANT[path])
        elif whole is not None:
            whole()
        elif of_one[1] == "images":
            self.image(of_one[2])
        elif named := [c for c in [*CONTAINERS.values()] if of_one[2] in (c.id, c.name)]:
            getattr(self, f"container_{of_one[3] or 'delete'}")(named[0])
        else:
            self.refuse(404, f"No such container: {of_one[2]}")

    def events(self):
        (name,) = self.filters["container"]
        event = {"Type": "container", "Action": "oom", "Actor": {"ID": name}, "time": 1}
        self.answer(200, event if is_in_trouble(f"oom-{name}") else None)

    def containers_json(self):
        asked = pairs(self.filters.get("label", [])).items()
        found = [c for c in [*CONTAINERS.values()] if asked <= c.body["Labels"].items()]
        named = [{"Id": c.id, "Names": [f"/{c.name}"], "Labels": c.body["Labels"]} for c in found]
        self.answer(200, named)

    def containers_create(self):
        one = Container(self.query["name"], self.body)
        with LOCK, (STATE / "runs.jsonl").open("a") as log:
            log.write(json.dumps({"name": one.name, "env": one.env, **one.body}) + "\n")
        if is_in_trouble("slow"):
            time.sleep(float((STATE / "slow").read_text()))
        if not folder_of(one.body["Image"]).is_dir():
            self.refuse(404, f"No such image: {one.body['Image']}")
        elif CONTAINERS.setdefault(one.name, one) is not one:
            self.refuse(409, f'Conflict. The container name "/{one.name}" is already in use')
        else:
            self.answer(201, {"Id": one.id, "Warnings": []})

    def image(self, name):
        if not folder_of(name).is_dir():
            return self.refuse(404, f"No such image: {name}")
        digests = [f"{name}@sha256:" + "cd" * 32]
        return self.answer(200, {"Id": "sha256:" + "ab" * 32, "RepoDigests": digests})

    def images_create(self):
        name = f"{self.query['fromImage'].removeprefix('docker.io/')}:{self.query['tag']}"
        known = folder_of(name, "registry")
        if not known.is_dir():
            return self.refuse(404, f"manifest for {name} not found: manifest unknown")
        time.sleep(float((known / "seconds").read_text()))
        shutil.copytree(known, folder_of(name))
        return self.answer(200, {"status": "Pull complete", "id": "0123456789ab"})

    def container_start(self, one):
        with LOCK:
            why = one.start()
        if not why:
            return self.answer(204)
        one.end(127)
        return self.refuse(400, why)

    def container_attach(self, one):
        self.wfile.write(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream"
            b"\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        self.wfile.flush()
        lock = threading.Lock()

        def copy(stream, source):
            while chunk := os.read(source, 65536):
                with lock, contextlib.suppress(OSError):
                    self.wfile.write(struct.pack(">BxxxL", stream, len(chunk)) + chunk)

        with ThreadPoolExecutor() as copies:
            for stream, (source, _) in one.streams.items():
                copies.submit(copy, stream, source)
        self.close_connection = True

    def container_wait(self, one):
        self.head(200, Connection="close")
        self.wfile.flush()
        one.ended.wait()
        with contextlib.suppress(OSError):
            self.wfile.write(json.dumps({"StatusCode": one.status}).encode())

    def container_kill(self, one):
        asked = self.query["signal"]
        one.signal(int(asked) if asked.isdigit() else signal.Signals[f"SIG{asked}"])
        self.answer(204)

    def container_json(self, one):
        running = one.process is not None
        state = {"Running": running, "Pid": one.process.pid if running else 0}
        self.answer(200, {"Id": one.id, "Name": "/" + one.name, "State": state})

    def container_delete(self, one):
        if one.process is None:
            one.end(137)
        else:
            one.signal(signal.SIGKILL)
            one.ended.wait(20)
        self.answer(204)


for verb in ("HEAD", "GET", "POST", "DELETE"):
    setattr(Handler, f"do_{verb}", Handler.route)


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


server = Server(str(STATE / "engine"), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("serves", flush=True)
sys.stdin.read()  # the test holds the other end
for container in [*CONTAINERS.values()]:
    with contextlib.suppress(ProcessLookupError, AttributeError):
        os.killpg(container.process.pid, signal.SIGKILL)
os._exit(0)
