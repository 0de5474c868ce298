"""Host: what the system says of itself, and a table of what that amounts to."""

import resource
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from tables import each, tables_of

from perfgate.machine.nvml import NotReadable
from perfgate.machine.preflight import host as host_rules
from perfgate.machine.preflight.check import Check, Need
from perfgate.machine.preflight.host import hub_cache, judge_host

GIB, MIB = 2**30, 2**20
NO_LIMIT = resource.RLIM_INFINITY
# Room on all disks and in /dev/shm; limits; ports of the range, of which the first are in use.
WELL = {
    "room": 80 * GIB,
    "shm": (64 * GIB, 64 * GIB),
    "files": (65536, NO_LIMIT),
    "locked": NO_LIMIT,
    "ports": (32768, 60999, 100),
    "year": 2026,
}
CPU = Need(connections=4)
EIGHT = Need(gpus=8, gpu="B200", gpus_in_all=8, weights_bytes=395 * GIB, connections=3072)
TABLE = tables_of("preflight_host")


def there_is(name: str, value):
    """What the machine has, as `WELL` has it, of a row of the table."""
    if value == "unknown" or name not in ("room", "shm", "held"):
        return None if value == "unknown" else value
    return tuple(int(one * GIB) for one in value) if name == "shm" else int(value * GIB)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """What a machine amounts to that has what is said, and all else well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))

    def judged(need: Need, model: str | None, **has) -> dict[str, Check]:
        has = {**WELL, "held": 0, **has}
        monkeypatch.setattr(host_rules, "_held", lambda hub, model: has["held"])

        def usage(folder: Path) -> tuple[int, int]:
            room = has["shm"] if folder == Path("/dev/shm") else has["room"]
            if room is None:
                raise NotReadable("no such file")
            return room if isinstance(room, tuple) else (room, room)

        ports, table = tmp_path / "range", tmp_path / "tcp"
        ports.unlink(missing_ok=True)
        if has["ports"] is not None:
            first, last, used = has["ports"]
            ports.write_text(f"{first}\t{last}\n")
            rows = [f"{n}: 0100007F:{first + n:04X} 0:0" for n in range(used)]
            table.write_text("\n".join(["  sl  local_address", *rows]))
        locked = (has["locked"],) * 2
        limits = {resource.RLIMIT_NOFILE: has["files"], resource.RLIMIT_MEMLOCK: locked}
        with monkeypatch.context() as here:
            here.setattr(host_rules, "_usage", usage)
            here.setattr(host_rules, "_PORT_RANGE", ports)
            here.setattr(host_rules, "_SOCKETS", (table,))
            here.setattr(resource, "getrlimit", limits.get)
            here.setattr(time, "gmtime", lambda: SimpleNamespace(tm_year=has["year"]))
            checks, _ = judge_host(need, tmp_path / "runs", tmp_path / "store", model)
        return {check.name: check for check in checks}

    return judged


@each(
    ("question", "has", "need", "outcome", "found"),
    [(question, *row) for question, rows in TABLE.items() for row in rows],
)
def test_what_a_machine_amounts_to(judged, question, has: dict, need, outcome, found: str) -> None:
    has = {name: there_is(name, value) for name, value in has.items()}
    check = judged({"cpu": CPU, "eight": EIGHT}[need], "lab/small", **has)[question]
    assert check.outcome == outcome
    assert found in check.found
    assert bool(check.hint) == (outcome in ("warning", "failed"))
    assert check.expected or outcome == "unknown"


def test_what_applies_to_several_gpus_alone_is_not_asked_of_a_cpu(judged) -> None:
    of_all = ["run folder", "own store", "open files", "ports", "date"]
    assert list(judged(CPU, None)) == of_all
    assert judged(EIGHT, None).keys() == {*of_all, "shared memory", "locked memory"}


def look(folder: Path, model: str | None = None) -> tuple[dict[str, str], dict[str, str]]:
    """What is found on this machine, and what is not judged."""
    checks, unjudged = judge_host(EIGHT, folder, Path("/"), model)
    return {check.name: check.found for check in checks}, dict(unjudged)


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found, unjudged = look(tmp_path / "not" / "yet")
    assert found["run folder"].endswith(" free in not/yet")
    assert found["own store"].endswith(" free in /")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert found["open files"] in (f"{soft:,} for a process", "no limit")
    assert found["date"] == f"the year {time.gmtime().tm_year}"
    assert set(unjudged) == {"cpu governor", "swap", "numa balancing"}
    assert all(unjudged.values())


def test_the_free_room_is_that_of_the_folders_disk(tmp_path: Path, monkeypatch) -> None:
    refusal = OSError(5, "Input/output error")
    monkeypatch.setattr("os.statvfs", Mock(side_effect=refusal))
    assert look(tmp_path)[0]["run folder"] == f"{tmp_path}: Input/output error"


def test_where_the_hubs_models_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert hub_cache() == Path("~/.cache/huggingface/hub").expanduser()
    for name, value, cache in (
        ("XDG_CACHE_HOME", "/c", "/c/huggingface/hub"),
        ("HF_HOME", "/hf", "/hf/hub"),
        ("HF_HUB_CACHE", "/hub", "/hub"),
    ):
        monkeypatch.setenv(name, value)
        assert hub_cache() == Path(cache)


def test_what_is_there_of_a_model_counts_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--lab--small"
    (folder / "blobs").mkdir(parents=True)
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "blobs" / "0a").write_bytes(b"x" * 3 * MIB)
    (folder / "snapshots" / "abc" / "model.safetensors").symlink_to(folder / "blobs" / "0a")
    assert look(tmp_path, "lab/small")[0]["model cache"].endswith(", 3 MiB of the model")
    assert look(tmp_path, "lab/other")[0]["model cache"].endswith(", 0 MiB of the model")


def test_a_listening_socket_is_a_port_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "range").write_text(f"{port}\t{port}\n")
        monkeypatch.setattr(host_rules, "_PORT_RANGE", tmp_path / "range")
        assert look(tmp_path)[0]["ports"] == f"0 free of {port}-{port}"


@each(
    ("governors", "numa", "unjudged"),
    [
        ((), None, ("the system names none", "the system has no such setting")),
        (("performance",), "0\n", ("performance", "off")),
        (("powersave", "performance", "powersave"), "1\n", ("performance, powersave", "on")),
        ((), "2\n", ("the system names none", "2")),
    ],
)
def test_governors_and_numa(governors, numa, unjudged, tmp_path: Path, monkeypatch) -> None:
    for number, governor in enumerate(governors):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(governor + "\n")
    if numa is not None:
        (tmp_path / "numa").write_text(numa)
    monkeypatch.setattr(host_rules, "_CPUS", tmp_path)
    monkeypatch.setattr(host_rules, "_NUMA", tmp_path / "numa")
    _, found = look(tmp_path)
    assert (found["cpu governor"], found["numa balancing"]) == unjudged
