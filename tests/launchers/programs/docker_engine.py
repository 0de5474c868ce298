"""What of the Docker Engine's API Docker's own program needs, over the stand-in daemon.

So the real `docker` can be the program that is tested with, where it is installed: its statuses,
its signals, its words. The containers are those of `docker_daemon.py`.
"""

import json
import os
import re
import socketserver
import struct
import threading
import uuid
from http.server import BaseHTTPRequestHandler
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

STREAM_OUT, STREAM_ERR = 1, 2


class Pending:
    """A container that was created: what it will run, and where its output goes."""

    def __init__(self, name, body):
        self.name = name
        self.id = uuid.uuid4().hex * 2
        self.body = body
        self.out = os.pipe()
        self.err = os.pipe()
        self.started = threading.Event()
        self.ended = threading.Event()
        self.status = None
        self.removed = False

    @property
    def question(self):
        """As the stand-in's own program asks for it."""
        host, body = self.body["HostConfig"], self.body
        given = {"name": [self.name], "network": [host["NetworkMode"]]}
        given["label"] = [f"{name}={value}" for name, value in body["Labels"].items()]
        given["volume"] = host["Binds"] or []
        if body["WorkingDir"]:
            given["workdir"] = [body["WorkingDir"]]
        if host["DeviceRequests"]:
            (request,) = host["DeviceRequests"]
            devices = ",".join(request["DeviceIDs"] or [])
            given["gpus"] = [f'"device={devices}"' if devices else "all"]
        for port, (bound,) in (host["PortBindings"] or {}).items():
            inside = port.partition("/")[0]
            given["publish"] = [f"{bound['HostIp']}:{bound['HostPort']}:{inside}"]
        if body["Entrypoint"]:
            given["entrypoint"] = body["Entrypoint"]
        env = dict(one.split("=", 1) for one in body["Env"] if "=" in one)
        image = body["Image"]
        return {"options": given, "image": image, "argv": body["Cmd"] or [], "env": env}


class Handler(BaseHTTPRequestHandler):
    """One call of the API; `daemon` has the names of `docker_daemon.py`."""

    daemon: ClassVar = {}
    pending: ClassVar = {}
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "docker"

    def do_HEAD(self):
        self.hang_if_asked()
        self.answer(200, None)

    def hang_if_asked(self):
        if (self.daemon["STATE"] / "hangs").exists():
            threading.Event().wait()

    def do_GET(self):
        self.route("GET")

    def do_POST(self):
        self.route("POST")

    def do_DELETE(self):
        self.route("DELETE")

    def answer(self, status, value):
        text = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Api-Version", "1.50")
        self.send_header("Ostype", "linux")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def refuse(self, status, why):
        self.answer(status, {"message": why})

    def route(self, method):
        self.hang_if_asked()
        place = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(place.query).items()}
        path = re.sub(r"^/v[\d.]+", "", unquote(place.path))
        length = int(self.headers.get("Content-Length") or 0)
        self.body = json.loads(self.rfile.read(length)) if length else {}
        found = re.fullmatch(r"/(\w+)/(.+?)(?:/(json|start|attach|wait|kill|logs))?", path)
        if path in ("/_ping", "/version", "/containers/json", "/events"):
            getattr(self, path.strip("/_").replace("/", "_"))()
        elif path == "/containers/create":
            self.create()
        elif path == "/images/create":
            self.pull()
        elif found and found[1] == "images":
            self.image(found[2])
        elif found:
            one = next((p for p in self.pending.values() if found[2] in (p.id, p.name)), None)
            if one is None or one.removed:
                self.refuse(404, f"No such container: {found[2]}")
                return
            getattr(self, f"c_{found[3] or method.lower()}")(one)

    def ping(self):
        self.answer(200, "OK")

    def version(self):
        version = {"Version": "99.0", "ApiVersion": "1.50", "MinAPIVersion": "1.24"}
        self.answer(200, {**version, "Os": "linux", "Arch": "amd64"})

    def events(self):
        name = next(iter(json.loads(self.query["filters"])["container"]))
        seen = (self.daemon["STATE"] / f"oom-{name}").exists()
        event = {"Type": "container", "Action": "oom", "Actor": {"ID": name}, "time": 1}
        self.answer(200, event if seen else None)

    def containers_json(self):
        labels = json.loads(self.query.get("filters", "{}")).get("label", {})
        request = [one.split("=", 1) for one in labels]
        found = [
            {"Id": p.id, "Names": ["/" + p.name], "Labels": self.labels_of(p), "State": "x"}
            for p in [*self.pending.values()]
            if not p.removed
            and all(self.labels_of(p).get(name) == value for name, value in request)
        ]
        self.answer(200, found)

    def labels_of(self, one):
        running = self.daemon["CONTAINERS"].get(one.name)
        return running.labels if running else one.body["Labels"]

    def create(self):
        one = Pending(self.query["name"], self.body)
        self.daemon["log"]({**one.question, "body": self.body})
        self.daemon["slow"]()
        if not self.daemon["image_folder"](one.body["Image"]).is_dir():
            self.refuse(404, f"No such image: {one.body['Image']}")
            return
        self.pending[one.id] = one
        self.answer(201, {"Id": one.id, "Warnings": []})

    def image(self, name):
        found = self.daemon["image"]([name])
        if found["status"]:
            self.refuse(404, f"No such image: {name}")
        else:
            self.answer(200, json.loads(found["out"])[0])

    def pull(self):
        name = f"{self.query['fromImage'].removeprefix('docker.io/')}:{self.query['tag']}"
        found = self.daemon["pulled"]([name])
        if found["status"]:
            why = found["err"].removeprefix("Error response from daemon: ").strip()
            self.refuse(404, why)
        else:
            self.answer(200, {"status": "Pull complete", "id": "0123456789ab"})

    def c_start(self, one):
        try:
            with self.daemon["LOCK"]:
                why, _ = self.daemon["refuse"](one.question)
                if why:
                    raise RuntimeError(why)
                container = self.daemon["Container"](one.question, [one.out[1], one.err[1]])
                container.id = one.id
                self.daemon["CONTAINERS"][one.name] = container
        except FileNotFoundError as error:
            why = f'failed to create task for container: exec: "{error}": '
            self.failed(one, f"{why}executable file not found in $PATH: unknown")
            return
        except RuntimeError as error:
            self.failed(one, str(error))
            return
        self.close_own(one)
        one.started.set()
        threading.Thread(target=self.end, args=(one, container), daemon=True).start()
        self.answer(204, None)

    def failed(self, one, why):
        self.close_own(one)
        one.status, one.removed = 127, True
        one.ended.set()
        self.refuse(400, why)

    def close_own(self, one):
        os.close(one.out[1])
        os.close(one.err[1])

    def end(self, one, container):
        one.status = container.wait()
        one.removed = True
        one.ended.set()

    def c_attach(self, one):
        self.wfile.write(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream"
            b"\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        self.wfile.flush()
        lock = threading.Lock()

        def copy(stream, source):
            while chunk := os.read(source, 65536):
                with lock:
                    try:
                        self.wfile.write(struct.pack(">BxxxL", stream, len(chunk)) + chunk)
                    except OSError:
                        return

        copies = [
            threading.Thread(target=copy, args=(stream, source), daemon=True)
            for stream, source in ((STREAM_OUT, one.out[0]), (STREAM_ERR, one.err[0]))
        ]
        for thread in copies:
            thread.start()
        for thread in copies:
            thread.join()
        self.close_connection = True

    def c_wait(self, one):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        one.ended.wait()
        text = json.dumps({"StatusCode": one.status}).encode()
        try:
            self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def c_kill(self, one):
        running = self.daemon["CONTAINERS"].get(one.name)
        if running is None:
            self.refuse(409, f"container {one.name} is not running")
            return
        running.signal(self.daemon["signal_of"](self.query["signal"]))
        self.answer(204, None)

    def c_json(self, one):
        running = self.daemon["CONTAINERS"].get(one.name)
        pid = running.process.pid if running else 0
        state = {"Running": running is not None, "Pid": pid}
        self.answer(200, {"Id": one.id, "Name": "/" + one.name, "State": state})

    def c_delete(self, one):
        running = self.daemon["CONTAINERS"].get(one.name)
        if running is not None:
            running.signal(9)
            one.ended.wait(20)
        one.removed = True
        self.answer(204, None)


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def serve_api(daemon, path):
    """Answer on a socket for as long as the process lives."""
    Handler.daemon = daemon
    threading.Thread(target=Server(path, Handler).serve_forever, daemon=True).start()
