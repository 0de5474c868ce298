"""Host probe: the facts are the system's own, read here and now."""

import os
import resource
import socket
from pathlib import Path

import pytest
from tables import each

from perfgate.machine.preflight import host_probe
from perfgate.machine.preflight.facts import Ports
from perfgate.machine.preflight.host_probe import hub_cache, look_at_host
from perfgate.machine.reading import Unreadable


def test_this_machine(tmp_path: Path) -> None:
    host = look_at_host(tmp_path / "not" / "yet", tmp_path, None)
    assert isinstance(host.run_folder.free_bytes, int)
    assert host.run_folder.folder == tmp_path / "not" / "yet"
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert host.open_files == (None if soft == resource.RLIM_INFINITY else soft)
    assert isinstance(host.shm_bytes, int)
    assert isinstance(host.ports, Ports)
    assert host.ports.first < host.ports.last
    assert host.year >= 2026
    assert set(host.unjudged) == {"cpu governor", "swap", "numa balancing"}
    assert all(host.unjudged.values())


def test_folders_are_named_as_a_person_here_does(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    host = look_at_host(tmp_path / "runs", Path("/"), None)
    assert (host.run_folder.folder, host.store.folder) == (Path("runs"), Path("/"))


def test_the_free_room_is_that_of_the_folders_disk(tmp_path: Path, monkeypatch) -> None:
    real = os.statvfs

    def no_answer(path) -> object:
        if str(path).startswith(str(tmp_path)):
            raise OSError(5, "Input/output error")
        return real(path)

    monkeypatch.setattr("os.statvfs", no_answer)
    assert look_at_host(tmp_path, Path("/"), None).run_folder.free_bytes == Unreadable(
        f"{tmp_path}: Input/output error"
    )


@pytest.mark.parametrize(
    ("environment", "cache"),
    [
        ({}, "~/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HF_HOME": "/hf", "XDG_CACHE_HOME": "/c"}, "/hf/hub"),
        ({"HF_HUB_CACHE": "/hub", "HF_HOME": "/hf"}, "/hub"),
    ],
)
def test_where_the_hubs_models_are(environment, cache: str, monkeypatch) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert hub_cache() == Path(cache).expanduser()


def test_what_is_there_of_a_model_counts_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--lab--small"
    (folder / "blobs").mkdir(parents=True)
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "blobs" / "0a").write_bytes(b"x" * 1000)
    (folder / "snapshots" / "abc" / "model.safetensors").symlink_to(folder / "blobs" / "0a")
    small, other = (
        look_at_host(tmp_path, tmp_path, f"lab/{name}").hub for name in ("small", "other")
    )
    assert small is not None
    assert other is not None
    assert (small.held_bytes, other.held_bytes) == (1000, 0)
    assert look_at_host(tmp_path, tmp_path, None).hub is None


def test_a_listening_socket_is_a_port_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        one = tmp_path / "range"
        one.write_text(f"{port}\t{port}\n")
        monkeypatch.setattr(host_probe, "_PORT_RANGE", one)
        assert look_at_host(tmp_path, tmp_path, None).ports == Ports(port, port, 1)
    (tmp_path / "range").unlink()
    assert isinstance(look_at_host(tmp_path, tmp_path, None).ports, Unreadable)


@each(
    ("governors", "told"),
    [
        ((), "the system names none"),
        (("performance",), "performance"),
        (("powersave", "performance", "powersave"), "performance, powersave"),
    ],
)
def test_the_governors_of_all_cores(governors, told: str, tmp_path: Path, monkeypatch) -> None:
    for number, governor in enumerate(governors):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(governor + "\n")
    monkeypatch.setattr(host_probe, "_CPUS", tmp_path)
    assert look_at_host(tmp_path, tmp_path, None).unjudged["cpu governor"] == told


@pytest.mark.parametrize(("setting", "told"), [("0\n", "off"), ("1\n", "on"), ("2\n", "2")])
def test_numa_balancing(setting: str, told: str, tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "numa_balancing"
    file.write_text(setting)
    monkeypatch.setattr(host_probe, "_NUMA", file)
    assert look_at_host(tmp_path, tmp_path, None).unjudged["numa balancing"] == told
    file.unlink()
    assert "no such setting" in look_at_host(tmp_path, tmp_path, None).unjudged["numa balancing"]
