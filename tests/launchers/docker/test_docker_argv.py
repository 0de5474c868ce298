"""The argv of docker run: every option, and what Docker's own program makes of it."""

import json
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.launchers.docker.argv import (
    HOME,
    ContainerIdentity,
    ContainerSettings,
    gpus_word,
    handed_to_docker,
    run_words,
)
from perfgate.launchers.docker.calls import meaning, not_started
from perfgate.launchers.site import DockerSite

IMAGE = "registry/engine:1"
ROOT = DockerSite(user=None, cache=None, pass_on=())
RUN = Path("/runs/one")
HERE = ContainerIdentity("perfgate-server-1", ("--label", "perfgate.start=s"))
SERVE = Command(("trtllm-serve", "model"), {"A": "1"}, cwd=RUN)


def words(
    site: DockerSite = ROOT,
    command: Command = SERVE,
    identity: ContainerIdentity = HERE,
    *,
    has_gpus: bool = False,
    folders: tuple[Path, ...] = (),
    environ: dict[str, str] | None = None,
    greeted: bool = True,
) -> list[str]:
    box = ContainerSettings(IMAGE, site, has_gpus, folders)
    return [*run_words(box, command, identity, environ or {}, greeted=greeted)]


def values(found: list[str], option: str) -> list[str]:
    return [found[at + 1] for at, word in enumerate(found[: found.index(IMAGE)]) if word == option]


def test_the_whole_of_it() -> None:
    assert words(has_gpus=True) == [
        *("run", "--rm", "--ipc=host", "--gpus", "all", "--network", "host"),
        *("-v", "/runs/one:/runs/one", "-w", "/runs/one", "--name", "perfgate-server-1"),
        *("-e", "A", "-e", "PERFGATE_LAUNCH", "--init", "--pull", "never"),
        *("--label", "perfgate.start=s", IMAGE, "trtllm-serve", "model"),
    ]


class TestGpus:
    @each(
        ("visible", "value"),
        [
            (None, "all"),
            ("", "all"),
            ("GPU-1", "device=GPU-1"),
            ("GPU-1,GPU-2", '"device=GPU-1,GPU-2"'),
            ("0,1,2", '"device=0,1,2"'),
            ("MIG-1,MIG-2", '"device=MIG-1,MIG-2"'),
        ],
    )
    def test_are_named_as_docker_takes_them(self, visible: str | None, value: str) -> None:
        assert gpus_word(visible, DockerSite()) == value

    def test_are_those_of_the_lease_and_their_names_stay_outside(self) -> None:
        leased = Command(("x",), {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"}, cwd=RUN)
        found = words(command=leased, has_gpus=True, environ={"CUDA_VISIBLE_DEVICES": "GPU-9"})
        assert values(found, "--gpus") == ['"device=GPU-1,GPU-2"']
        assert not any("CUDA_VISIBLE_DEVICES" in word for word in found)

    def test_are_else_those_that_the_person_chose(self) -> None:
        found = words(has_gpus=True, environ={"CUDA_VISIBLE_DEVICES": "3"})
        assert values(found, "--gpus") == ["device=3"]

    def test_none_are_given_without_need_even_if_the_runtime_would(self) -> None:
        found = words(has_gpus=False, environ={"CUDA_VISIBLE_DEVICES": "3"})
        assert "--gpus" not in found
        assert "NVIDIA_VISIBLE_DEVICES=void" in values(found, "-e")


class TestUser:
    def test_files_belong_to_whoever_runs_perfgate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "getuid", lambda: 1000)
        monkeypatch.setattr(os, "getgid", lambda: 100)
        monkeypatch.setenv("LOGNAME", "ada")
        found = words(DockerSite(user="me", cache=None, pass_on=()))
        assert values(found, "--user") == ["1000:100"]
        # The image knows no such user: a home that can be written to, and a name.
        assert values(found, "--tmpfs") == [f"{HOME}:rw,exec,nosuid,mode=1777"]
        assert {f"HOME={HOME}", "USER=ada", "LOGNAME=ada"} <= set(values(found, "-e"))

    def test_root_has_the_images_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "getuid", lambda: 0)
        monkeypatch.setattr(os, "getgid", lambda: 0)
        found = words(DockerSite(user="me", cache="/c", pass_on=()))
        assert values(found, "--user") == ["0:0"]
        assert "/c:/root/.cache" in values(found, "-v")
        assert "--tmpfs" not in found

    def test_the_cache_is_the_users(self) -> None:
        found = words(DockerSite(user="7:7", cache="/c", pass_on=()))
        assert f"/c:{HOME}/.cache" in values(found, "-v")


class TestMounts:
    def test_are_the_folders_that_files_are_named_from_each_once(self) -> None:
        folders = (Path("/models"), RUN, Path("/runs"), Path("/models"))
        found = values(words(folders=folders), "-v")
        assert found == ["/models:/models", "/runs:/runs"]

    def test_the_site_goes_first(self) -> None:
        site = DockerSite(user=None, cache=None, mounts=("/fast:/models:ro",))
        found = values(words(site, folders=(Path("/models"),)), "-v")
        assert found == ["/fast:/models:ro", "/runs/one:/runs/one"]

    def test_a_colon_in_a_path_is_refused(self) -> None:
        with pytest.raises(InputError, match="cannot mount"):
            words(command=Command(("x",), cwd=Path("/runs/a:b")))


class TestEnvironment:
    def test_variables_are_named_and_not_written(self) -> None:
        command = Command(("x",), {"HF_TOKEN": "hf_1", "A": "2"}, cwd=RUN)
        site = DockerSite(user=None, cache=None, pass_on=("HF_TOKEN", "MY_API_KEY", "B"))
        found = words(site, command, environ={"MY_API_KEY": "key_1", "B": "3"})
        asked = ["NVIDIA_VISIBLE_DEVICES=void", "HF_TOKEN", "A", "MY_API_KEY", "B"]
        assert values(found, "-e") == [*asked, "PERFGATE_LAUNCH"]
        assert not any("_1" in word for word in found)
        assert handed_to_docker(command) == {"HF_TOKEN": "hf_1", "A": "2"}

    def test_what_is_not_set_here_is_not_passed_on(self) -> None:
        site = DockerSite(user=None, cache=None, pass_on=("HF_TOKEN",))
        assert "HF_TOKEN" not in words(site)


class TestNetwork:
    def test_a_port_is_published_on_the_loopback_device_alone(self) -> None:
        found = words(identity=ContainerIdentity("n", (), "bridge", 8123))
        assert values(found, "--network") == ["bridge"]
        assert values(found, "-p") == ["127.0.0.1:8123:8123"]

    def test_nothing_is_published_on_the_hosts_own(self) -> None:
        assert "-p" not in words()


def test_what_docker_is_left_to_decide_is_not_said() -> None:
    site = DockerSite(ipc=None, user=None, cache=None, pass_on=())
    found = words(site, Command(("x",)))
    assert not {"--ipc=host", "--user", "-w", "-v"} & set(found)


def test_the_sites_options_come_last() -> None:
    site = DockerSite(user=None, cache=None, options=("--ulimit=memlock=-1",))
    found = words(site)
    assert found[found.index(IMAGE) - 1] == "--ulimit=memlock=-1"


@pytest.mark.parametrize("greeted", [True, False])
def test_the_entry_point_is_left_out_where_its_greeting_would_be_taken_for_the_result(
    greeted: bool,
) -> None:
    prints = Command(("python", "prepare.py"), stdout="data.txt" if greeted else None, cwd=RUN)
    found = words(command=prints, greeted=greeted)
    assert found[-4:] == ["--entrypoint", "python", IMAGE, "prepare.py"]


NEEDS_DOCKER = pytest.mark.skipif(
    shutil.which("docker") is None, reason="Docker's own program is not here"
)


@NEEDS_DOCKER
@pytest.mark.parametrize(
    "asked",
    [
        ("version", "--format", "{{.Server.Version}}"),
        ("ps", "--all", "--filter", "label=a=b", "--format", '{{.Names}}\t{{.Label "c"}}'),
        ("rm", "--force", "--volumes", "a", "b"),
        ("container", "inspect", "--format", "{{.Id}} {{.State.Pid}}", "a"),
        ("image", "inspect", "a"),
        ("pull", "a"),
        ("events", "--since", "1", "--until", "2", "--filter", "event=oom", "--format", "{{.ID}}"),
    ],
)
def test_dockers_own_program_knows_what_it_is_asked(tmp_path: Path, asked: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["docker", *asked],
        env={"PATH": os.environ["PATH"], "DOCKER_HOST": f"unix://{tmp_path}/none"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # Nobody answers there; what it does not know it would have refused before it looked.
    assert "Cannot connect to the Docker daemon" in done.stderr
    assert meaning(done.stderr)[1] == "is the daemon running? `docker version` must show a server"


@NEEDS_DOCKER
def test_dockers_own_program_reads_it_as_it_is_meant(tmp_path: Path) -> None:
    """Asked of a daemon that takes down what is to be created, and creates nothing."""
    asked: dict[str, Any] = {}
    site = DockerSite(user="7:8", cache="/c", mounts=("/m:/m:ro",), options=("--memory=1g",))
    command = Command(
        ("trtllm-serve", "--x", "a b"),
        {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "HF_TOKEN": "hf_1", "A": "x=y z"},
        cwd=RUN,
    )
    argv = words(site, command, ContainerIdentity("n", HERE.labels, "bridge", 8123), has_gpus=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **handed_to_docker(command)}
    with _noting_daemon(tmp_path / "s", asked) as address:
        done = subprocess.run(
            ["docker", *argv],
            env={**environment, "DOCKER_HOST": address},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert "not today" in done.stderr, done.stderr
    assert "not today" in not_started(done.returncode, done.stderr)
    host = asked["HostConfig"]
    (gpus,) = host["DeviceRequests"]
    assert gpus["DeviceIDs"] == ["GPU-1", "GPU-2"]
    assert set(host["Binds"]) == {"/m:/m:ro", f"/c:{HOME}/.cache", "/runs/one:/runs/one"}
    assert host["Tmpfs"] == {HOME: "rw,exec,nosuid,mode=1777"}
    assert host["PortBindings"] == {"8123/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8123"}]}
    assert (host["AutoRemove"], host["Init"], host["IpcMode"]) == (True, True, "host")
    assert (host["NetworkMode"], host["Memory"]) == ("bridge", 2**30)
    assert asked["Cmd"] == ["trtllm-serve", "--x", "a b"]
    assert {"HF_TOKEN=hf_1", "A=x=y z"} <= set(asked["Env"])
    assert (asked["User"], asked["WorkingDir"]) == ("7:8", "/runs/one")
    assert asked["Labels"] == {"perfgate.start": "s"}


class _noting_daemon:  # noqa: N801 - used as a context manager alone
    """What of the Engine's API `docker run` calls first; `asked` gets the container's settings."""

    def __init__(self, path: Path, asked: dict[str, Any]) -> None:
        self.path = path
        self.asked = asked
        self.server = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> str:
        self.server.bind(str(self.path))
        self.server.listen(8)
        threading.Thread(target=self._serve, daemon=True).start()
        return f"unix://{self.path}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile("rwb") as text:
            while first := text.readline().decode():
                headers = {}
                while (header := text.readline().decode().strip()) != "":
                    name, _, value = header.partition(": ")
                    headers[name.lower()] = value
                body = text.read(int(headers.get("content-length", 0)))
                status, said = "200 OK", b"OK"
                if "/containers/create" in first:
                    self.asked.update(json.loads(body))
                    status, said = "500 No", b'{"message": "not today"}'
                head = [f"HTTP/1.1 {status}", "Api-Version: 1.50", "Ostype: linux"]
                head += ["Content-Type: application/json", f"Content-Length: {len(said)}", "", ""]
                text.write("\r\n".join(head).encode())
                text.write(b"" if first.startswith("HEAD") else said)
                text.flush()
