"""Host rules: tables of what a machine has and what that amounts to for what is needed."""

from dataclasses import replace
from pathlib import Path

from tables import each

from perfgate.machine.preflight.check import Case, Check
from perfgate.machine.preflight.facts import Disk, HostFacts, Ports
from perfgate.machine.preflight.host_rules import HOST_RULES, judge_host
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import Unreadable

GIB, MIB = 2**30, 2**20
IN_SHM = "free in /dev/shm"
NO = Unreadable("no such file")
WELL = HostFacts(
    run_folder=Disk(Path("runs"), 80 * GIB),
    store=Disk(Path(".perfgate"), 80 * GIB),
    hub=None,
    shm_bytes=64 * GIB,
    shm_free_bytes=64 * GIB,
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


def answer(question: str, host: HostFacts, need: Need) -> Check:
    (rule,) = (rule for rule in HOST_RULES if rule.judge.__name__ == question)
    finding = rule.judge(Case(host, need))
    assert finding is not None
    return rule.check(finding)


def disk(free) -> Disk:
    return Disk(Path("there"), free)


def shm(all_bytes: int, free_bytes: int) -> dict[str, int]:
    return {"shm_bytes": all_bytes, "shm_free_bytes": free_bytes}


TABLE = [
    # question, what there is, what is needed, outcome, what is said
    ("run_folder", {}, CPU, "ok", "80.0 GiB free in runs"),
    ("run_folder", {"run_folder": disk(5 * GIB)}, CPU, "ok", "5.0 GiB free in there"),
    ("run_folder", {"run_folder": disk(5 * GIB - 1)}, CPU, "warning", "5.0 GiB free in there"),
    ("run_folder", {"run_folder": disk(GIB - 1)}, CPU, "failed", "1.0 GiB free in there"),
    ("run_folder", {"run_folder": disk(0)}, CPU, "failed", "0 MiB free in there"),
    ("run_folder", {"run_folder": disk(NO)}, CPU, "unknown", "no such file"),
    ("store", {"store": disk(3 * GIB)}, CPU, "warning", "3.0 GiB free in there"),
    ("store", {"store": disk(NO)}, CPU, "unknown", "no such file"),
    ("shared_memory", {}, EIGHT, "ok", f"64.0 GiB of 64.0 GiB {IN_SHM}"),
    ("shared_memory", shm(64 * MIB, 64 * MIB), EIGHT, "failed", f"64 MiB of 64 MiB {IN_SHM}"),
    ("shared_memory", shm(64 * GIB, 65 * MIB), EIGHT, "warning", f"65 MiB of 64.0 GiB {IN_SHM}"),
    ("shared_memory", {"shm_bytes": NO}, EIGHT, "unknown", "no such file"),
    ("shared_memory", {"shm_free_bytes": NO}, EIGHT, "unknown", "no such file"),
    ("open_files", {}, EIGHT, "ok", "65,536 for a process"),
    ("open_files", {"open_files": None}, EIGHT, "ok", "no limit"),
    ("open_files", {"open_files": 1024}, EIGHT, "warning", "1,024 for a process"),
    ("open_files", {"open_files": 4096}, EIGHT, "ok", "4,096 for a process"),
    ("open_files", {"open_files": 4095}, EIGHT, "warning", "4,095 for a process"),
    ("open_files", {"open_files_most": 3071}, EIGHT, "failed", "3,071 at most"),
    ("open_files", {"open_files": 1024}, CPU, "warning", "1,024 for a process"),
    ("locked_memory", {}, EIGHT, "ok", "no limit"),
    ("locked_memory", {"locked_bytes": 8 * 2**20}, EIGHT, "warning", "8 MiB for a process"),
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
    check = answer(question, replace(WELL, **has), need)
    assert (check.outcome, check.found) == (outcome, found)
    if outcome == "unknown":
        assert check.hint == ""
    else:
        assert check.expected
        assert bool(check.hint) == (outcome != "ok")


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
    check = answer("model_cache", replace(WELL, hub=hub), need)
    assert check.outcome == outcome
    assert found is None or check.found == found


def test_what_applies_to_several_gpus_alone_is_not_asked_of_a_cpu() -> None:
    names = [check.name for check in judge_host(WELL, CPU)]
    assert names == ["run folder", "own store", "open files", "ports", "date"]
    assert {*names, "shared memory", "locked memory"} == {
        check.name for check in judge_host(WELL, EIGHT)
    }
