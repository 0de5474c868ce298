"""Host: the facts are the system's own; a table says what they amount to."""

import os
import resource
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from tables import each

from perfgate.machine.nvml import Unreadable
from perfgate.machine.preflight import host as host_rules
from perfgate.machine.preflight.check import Need
from perfgate.machine.preflight.host import (
    Disk,
    HostFacts,
    Ports,
    hub_cache,
    judge_host,
    look_at_host,
)

GIB, MIB = 2**30, 2**20
IN_SHM = "GiB free in /dev/shm"
NO = Unreadable("no such file")
WELL = HostFacts(
    run_folder=Disk(Path("runs"), 80 * GIB),
    store=Disk(Path(".perfgate"), 80 * GIB),
    hub=None,
    shm=(64 * GIB, 64 * GIB),
    open_files=65536,
    open_files_most=None,
    locked_bytes=None,
    ports=Ports(32768, 60999, 100),
    year=2026,
    unjudged={},
)
FEW = Ports(32768, 60999, 28000)
CPU = Need(connections=4)
EIGHT = Need(gpus=8, gpu="B200", gpus_in_all=8, weights_bytes=395 * GIB, connections=3072)


def disk(free) -> Disk:
    return Disk(Path("there"), free)


TABLE = [
    # question, what there is, what is needed, outcome, what is said
    ("run folder", {}, CPU, "ok", "80.0 GiB free in runs"),
    ("run folder", {"run_folder": disk(5 * GIB)}, CPU, "ok", "5.0 GiB free in there"),
    ("run folder", {"run_folder": disk(5 * GIB - 1)}, CPU, "warning", "5.0 GiB free in there"),
    ("run folder", {"run_folder": disk(GIB - 1)}, CPU, "failed", "1.0 GiB free in there"),
    ("run folder", {"run_folder": disk(0)}, CPU, "failed", "0 MiB free in there"),
    ("run folder", {"run_folder": disk(NO)}, CPU, "unknown", "no such file"),
    ("own store", {"store": disk(3 * GIB)}, CPU, "warning", "3.0 GiB free in there"),
    ("own store", {"store": disk(NO)}, CPU, "unknown", "no such file"),
    ("shared memory", {}, EIGHT, "ok", f"64.0 GiB of 64.0 {IN_SHM}"),
    (
        "shared memory",
        {"shm": (64 * MIB,) * 2},
        EIGHT,
        "failed",
        "64 MiB of 64 MiB free in /dev/shm",
    ),
    (
        "shared memory",
        {"shm": (64 * GIB, 65 * MIB)},
        EIGHT,
        "warning",
        f"65 MiB of 64.0 {IN_SHM}",
    ),
    ("shared memory", {"shm": NO}, EIGHT, "unknown", "no such file"),
    ("open files", {}, EIGHT, "ok", "65,536 for a process"),
    ("open files", {"open_files": None}, EIGHT, "ok", "no limit"),
    ("open files", {"open_files": 1024}, EIGHT, "warning", "1,024 for a process"),
    ("open files", {"open_files": 4096}, EIGHT, "ok", "4,096 for a process"),
    ("open files", {"open_files": 4095}, EIGHT, "warning", "4,095 for a process"),
    ("open files", {"open_files_most": 3071}, EIGHT, "failed", "3,071 at most"),
    ("open files", {"open_files": 1024}, CPU, "warning", "1,024 for a process"),
    ("locked memory", {}, EIGHT, "ok", "no limit"),
    ("locked memory", {"locked_bytes": 8 * 2**20}, EIGHT, "warning", "8 MiB for a process"),
    ("ports", {}, EIGHT, "ok", "28,132 free of 32768-60999"),
    ("ports", {"ports": FEW}, EIGHT, "failed", "232 free of 32768-60999"),
    ("ports", {"ports": FEW}, CPU, "ok", "232 free of 32768-60999"),
    ("ports", {"ports": NO}, CPU, "unknown", "no such file"),
    ("date", {}, CPU, "ok", "the year 2026"),
    ("date", {"year": 1970}, CPU, "failed", "the year 1970"),
    ("date", {"year": 2099}, CPU, "failed", "the year 2099"),
]


@each(("question", "has", "need", "outcome", "found"), TABLE)
def test_what_a_machine_amounts_to(question, has: dict, need, outcome: str, found: str) -> None:
    (check,) = (one for one in judge_host(replace(WELL, **has), need) if one.name == question)
    assert (check.outcome, check.found) == (outcome, found)
    assert bool(check.hint) == (outcome in ("warning", "failed"))
    assert check.expected or outcome == "unknown"


@each(
    ("hub", "weights", "outcome", "found"),
    [
        (Disk(Path("/hub"), 400 * GIB), 395, "ok", "400.0 GiB free in /hub, 0 MiB of the model"),
        (Disk(Path("/hub"), 300 * GIB), 395, "failed", None),
        (Disk(Path("/hub"), 300 * GIB, 200 * GIB), 395, "ok", None),
        (Disk(Path("/hub"), 0, 500 * GIB), 395, "ok", None),
        (
            Disk(Path("/hub"), 300 * GIB),
            None,
            "unknown",
            "300.0 GiB free in /hub, 0 MiB of the model; the size of the model is unknown",
        ),
        (Disk(Path("/hub"), NO), 395, "unknown", "no such file"),
    ],
)
def test_weights_that_must_be_fetched_need_room(hub, weights, outcome, found) -> None:
    need = replace(EIGHT, weights_bytes=None if weights is None else weights * GIB)
    check = judge_host(replace(WELL, hub=hub), need)[-1]
    assert check.outcome == outcome
    assert found is None or check.found == found


def test_what_applies_to_several_gpus_alone_is_not_asked_of_a_cpu() -> None:
    names = [check.name for check in judge_host(WELL, CPU)]
    assert names == ["run folder", "own store", "open files", "ports", "date"]
    assert {*names, "shared memory", "locked memory"} == {
        check.name for check in judge_host(WELL, EIGHT)
    }


def test_this_machine(tmp_path: Path) -> None:
    host = look_at_host(tmp_path / "not" / "yet", tmp_path, None)
    assert isinstance(host.run_folder.free_bytes, int)
    assert host.run_folder.folder == tmp_path / "not" / "yet"
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert host.open_files == (None if soft == resource.RLIM_INFINITY else soft)
    assert isinstance(host.shm, tuple)
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
        monkeypatch.setattr(host_rules, "_PORT_RANGE", one)
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
    monkeypatch.setattr(host_rules, "_CPUS", tmp_path)
    assert look_at_host(tmp_path, tmp_path, None).unjudged["cpu governor"] == told


@pytest.mark.parametrize(("setting", "told"), [("0\n", "off"), ("1\n", "on"), ("2\n", "2")])
def test_numa_balancing(setting: str, told: str, tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "numa_balancing"
    file.write_text(setting)
    monkeypatch.setattr(host_rules, "_NUMA", file)
    assert look_at_host(tmp_path, tmp_path, None).unjudged["numa balancing"] == told
    file.unlink()
    assert "no such setting" in look_at_host(tmp_path, tmp_path, None).unjudged["numa balancing"]
