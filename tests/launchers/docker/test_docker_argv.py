"""The argv of docker run: every option, and what Docker's own program makes of it."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO
from docker_host import docker_host
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Command
from perfgate.launchers.docker import containers
from perfgate.launchers.docker.containers import HOME, ContainerSettings
from perfgate.launchers.docker.launcher import DockerLauncher
from perfgate.launchers.site import DockerSite

IMAGE = "registry/engine:1"
ROOT = DockerSite(user=None, cache=None, pass_on=())
RUN = Path("/runs/one")
NAME, LABELS = "perfgate-server-1", ("--label", "perfgate.start=s")
SERVE = Command(("trtllm-serve", "model"), {"A": "1"}, cwd=RUN)


def words(site=ROOT, command=SERVE, *, has_gpus=False, folders=(), environ=None, **place):
    box = ContainerSettings(IMAGE, site, has_gpus, folders)
    return [*containers.run_words(box, command, NAME, environ or {}, labels=LABELS, **place)]


def values(found: list[str], option: str) -> list[str]:
    return [found[at + 1] for at, word in enumerate(found[: found.index(IMAGE)]) if word == option]


def test_the_whole_of_it() -> None:
    assert words(has_gpus=True) == [
        *("run", "--rm", "--ipc=host", "--gpus", "all", "--network", "host"),
        *("-v", "/runs/one:/runs/one", "-w", "/runs/one", "--name", "perfgate-server-1"),
        *("-e", "A", "-e", "PERFGATE_LAUNCH", "--init", "--pull", "never"),
        *("--label", "perfgate.start=s", IMAGE, "trtllm-serve", "model"),
    ]


def visible(devices: str):
    """GPUs that the person has chosen."""
    return {"has_gpus": True, "environ": {"CUDA_VISIBLE_DEVICES": devices}}


LEASED = Command(("x",), {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"}, cwd=RUN)
MODELS = Path("/models")
FAST = replace(ROOT, mounts=("/fast:/models:ro",))


@each(
    "case, option, expected",
    [
        ({"has_gpus": True}, "--gpus", ["all"]),
        (visible(""), "--gpus", ["all"]),
        (visible("GPU-1"), "--gpus", ["device=GPU-1"]),
        (visible("GPU-1,GPU-2"), "--gpus", ['"device=GPU-1,GPU-2"']),
        (visible("MIG-1,MIG-2"), "--gpus", ['"device=MIG-1,MIG-2"']),
        ({**visible("3"), "command": LEASED}, "--gpus", ['"device=GPU-1,GPU-2"']),
        ({**visible("3"), "has_gpus": False}, "--gpus", []),
        ({"command": Command(("x",))}, "-e", ["NVIDIA_VISIBLE_DEVICES=void", "PERFGATE_LAUNCH"]),
        ({**visible("3"), "command": LEASED}, "-e", ["PERFGATE_LAUNCH"]),
        # Folders that files are named from, each once; the site's mounts go first.
        ({"folders": (MODELS, RUN, RUN.parent, MODELS)}, "-v", ["/models:/models", "/runs:/runs"]),
        ({"site": FAST, "folders": (MODELS,)}, "-v", ["/fast:/models:ro", "/runs/one:/runs/one"]),
    ],
)
def test_the_values_of_an_option(case, option: str, expected: list[str]) -> None:
    assert values(words(**case), option) == expected


def test_a_colon_in_a_path_is_refused() -> None:
    with pytest.raises(InputError, match="cannot mount"):
        words(command=Command(("x",), cwd=Path("/runs/a:b")))


def test_files_belong_to_whoever_runs_perfgate(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = DockerSite(user="me", cache="/c", pass_on=())
    monkeypatch.setenv("LOGNAME", "ada")
    for user, group in ((1000, 100), (0, 0)):
        monkeypatch.setattr(os, "getuid", lambda user=user: user)
        monkeypatch.setattr(os, "getgid", lambda group=group: group)
        found = words(mine)
        assert values(found, "--user") == [f"{user}:{group}"]
        # The image knows no such user but root: a home that can be written to, and a name.
        home = HOME if user else "/root"
        assert f"/c:{home}/.cache" in values(found, "-v")
        assert values(found, "--tmpfs") == [f"{HOME}:rw,exec,nosuid,mode=1777"][: bool(user)]
        names = {f"HOME={HOME}", "USER=ada", "LOGNAME=ada"}
        assert names & {*values(found, "-e")} == (names if user else set())


def test_variables_are_named_and_not_written_and_passed_on_where_they_are_set() -> None:
    command = Command(("x",), {"HF_TOKEN": "hf_1", "A": "2"}, cwd=RUN)
    site = DockerSite(user=None, cache=None, pass_on=("HF_TOKEN", "MY_API_KEY", "NOT_SET"))
    found = words(site, command, environ={"MY_API_KEY": "key_1"})
    asked = ["NVIDIA_VISIBLE_DEVICES=void", "HF_TOKEN", "A", "MY_API_KEY"]
    assert values(found, "-e") == [*asked, "PERFGATE_LAUNCH"]
    assert not any("_1" in word for word in found)
    assert containers.handed_to_docker(command) == {"HF_TOKEN": "hf_1", "A": "2"}


def test_what_docker_is_left_to_decide_is_not_said_and_the_sites_options_come_last() -> None:
    site = replace(ROOT, ipc=None, options=("--ulimit=memlock=-1",))
    found = words(site, Command(("x",)))
    assert not {"--ipc=host", "--user", "-w", "-v"} & set(found)
    assert found[found.index(IMAGE) - 1] == "--ulimit=memlock=-1"


@each("greeted", [True, False])
def test_the_entry_point_is_left_out_where_its_greeting_would_be_taken_for_the_result(greeted):
    prints = Command(("python", "prepare.py"), stdout="data.txt" if greeted else None, cwd=RUN)
    found = words(command=prints, greeted=greeted)
    assert found[-4:] == ["--entrypoint", "python", IMAGE, "prepare.py"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("docker") is None, reason="Docker's own program is not here")
def test_dockers_own_program_reads_it_as_it_is_meant(tmp_path: Path) -> None:
    """Asked of a daemon that takes down what is to be created, and finds no way to its GPUs."""
    site = DockerSite(user="7:8", cache="/c", mounts=("/:/m:ro",), options=("--memory=1g",))
    command = Command(
        ("trtllm-serve", "--x", "a b"),
        {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "HF_TOKEN": "hf_1", "A": "x=y z"},
        cwd=RUN,
    )
    argv = ["docker", *words(site, command, network="bridge", port=8123, has_gpus=True)]
    with docker_host(real=True) as host:
        host.image(IMAGE)
        host.trouble("unknown-gpus")
        given = {**containers.handed_to_docker(command), **host.environment}
        env = {"PATH": os.environ["PATH"], **given}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
        (asked,) = host.runs
    assert "could not select device driver" in containers.not_started(done.returncode, done.stderr)
    settings = asked["HostConfig"]
    (gpus,) = settings["DeviceRequests"]
    assert gpus["DeviceIDs"] == ["GPU-1", "GPU-2"]
    assert set(settings["Binds"]) == {"/:/m:ro", f"/c:{HOME}/.cache", "/runs/one:/runs/one"}
    assert settings["Tmpfs"] == {HOME: "rw,exec,nosuid,mode=1777"}
    assert settings["PortBindings"] == {"8123/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8123"}]}
    assert (settings["AutoRemove"], settings["Init"], settings["IpcMode"]) == (True, True, "host")
    assert (settings["NetworkMode"], settings["Memory"]) == ("bridge", 2**30)
    assert asked["Cmd"] == ["trtllm-serve", "--x", "a b"]
    assert {"HF_TOKEN=hf_1", "A=x=y z"} <= set(asked["Env"])
    assert (asked["User"], asked["WorkingDir"]) == ("7:8", "/runs/one")
    assert asked["Labels"] == {"perfgate.start": "s"}


def test_the_release_of_a_document_is_started_with_a_warning_alone() -> None:
    """It is hardly the build under test."""
    told = replace(SCENARIO, engine=replace(SCENARIO.engine, name="tensorrt-llm"))
    told = replace(told, source=replace(told.source, engine_version="1.0.0"))
    (warning,) = DockerLauncher(DockerSite()).warnings([told, told], None)
    assert "starts nvcr.io/nvidia/tensorrt-llm/release:1.0.0, the release of the doc" in warning
    assert DockerLauncher(DockerSite()).warnings([told], "1.1.0") == ()
    assert DockerLauncher(DockerSite(image="mine:1")).warnings([told], None) == ()
    assert DockerLauncher(DockerSite()).warnings([SCENARIO], None) == (), "no image is known"
