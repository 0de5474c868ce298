"""Boosting: which starts have the slider set, and what is refused before anything is started."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import building
import pytest

from perfgate.campaign import vboost as boosting
from perfgate.campaign.session import Session
from perfgate.campaign.vboost import boosted_for, level_asked, level_for, require_here
from perfgate.core.errors import InputError
from perfgate.gate.performance import Rule
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.machine.leases import Device, Lease
from perfgate.runs.records import RunFolder
from perfgate.scenarios.scenario import Hardware, Launch, Scenario

ON_GPUS = replace(building.SCENARIO, hardware=Hardware("B200", 2, 1))
# Chosen by UUID: CUDA's name is another than NVML's number.
SECOND = Device("gpu-b", "GPU-b", "1", "NVIDIA B200", "GPU-bbbb")
PLAIN = {"--rehearse": False, "--rehearse-fault": None, "--launcher": "local"}


def session(tmp_path: Path, vboost: int | None = 4) -> Session:
    run = RunFolder(tmp_path)
    return Session(run, building.MACHINE, LocalLauncher(), Rule(), vboost=vboost)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What `boosted` was asked for, in the place of nvidia-smi."""
    found: list[object] = []

    @contextmanager
    def boosted(level: int, gpus: Sequence[str]) -> Iterator[dict[str, int]]:
        found.append((level, gpus))
        yield dict.fromkeys(gpus, 0)
        found.append("put back")

    monkeypatch.setattr(boosting, "boosted", boosted)
    return found


def test_the_level_that_the_options_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_FAKE_GPUS", raising=False)
    assert level_asked({**PLAIN, "--vboost": 4}.__getitem__) == 4
    assert level_asked({**PLAIN, "--vboost": 0}.__getitem__) == 0


@pytest.mark.parametrize(
    ("beside", "told"),
    [
        ({"--rehearse": True}, "stand-ins play the engine"),
        ({"--rehearse-fault": "oom"}, "stand-ins play the engine"),
        ({"--launcher": "slurm"}, "slurm starts engines on other nodes.*prolog"),
        ({"--launcher": "mpirun"}, "mpirun starts engines on other nodes.*prolog"),
    ],
)
def test_what_cannot_be_asked_together(beside: dict, told: str) -> None:
    with pytest.raises(InputError, match=f"(?s)^--vboost: .*{told}"):
        level_asked({**PLAIN, "--vboost": 0, **beside}.__getitem__)
    assert level_asked({**PLAIN, "--vboost": None, **beside}.__getitem__) is None


def test_made_up_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_FAKE_GPUS", "8")
    with pytest.raises(InputError, match="simulated: PERFGATE_FAKE_GPUS"):
        level_asked({**PLAIN, "--vboost": 4}.__getitem__)


def test_only_scenarios_on_gpus_have_a_level(tmp_path: Path) -> None:
    assert level_for(ON_GPUS, session(tmp_path)) == 4
    assert level_for(building.SCENARIO, session(tmp_path)) is None
    assert level_for(ON_GPUS, session(tmp_path, None)) is None


@pytest.mark.parametrize(
    "far",
    [
        replace(ON_GPUS, id="far", launch=Launch("srun")),
        replace(ON_GPUS, id="far", launch=Launch("sbatch")),
        replace(ON_GPUS, id="far", hardware=Hardware("B200", 16, 2), launch=Launch("mpirun")),
    ],
)
def test_starts_on_other_nodes_are_refused(
    tmp_path: Path, far: Scenario, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    here = building.machine(*["NVIDIA B200"] * 8)
    given = {**PLAIN, "--vboost": 4}.__getitem__
    require_here([ON_GPUS], given, here)
    with pytest.raises(InputError, match=r"(?s): far: started on other nodes.*prolog"):
        require_here([ON_GPUS, far], given, here)
    require_here([far], {**PLAIN, "--vboost": None}.__getitem__, here)
    # What this machine cannot run is skipped, and says so itself.
    monkeypatch.setattr("shutil.which", lambda _name: None)
    require_here([far], given, building.MACHINE)
    with (
        pytest.raises(InputError, match="other nodes"),
        boosted_for(far, session(tmp_path), Lease((SECOND,)), print),
    ):
        pytest.fail("nothing is started")
    assert asked == []


def test_the_leased_gpus_are_set_by_their_numbers(tmp_path: Path, asked: list[object]) -> None:
    told: list[str] = []
    with boosted_for(ON_GPUS, session(tmp_path), Lease((SECOND,)), told.append):
        assert asked == [(4, ["1"])]
    assert asked == [(4, ["1"]), "put back"]
    assert told == ["vboost is 4; it was 0 on GPU 1"]


@pytest.mark.parametrize("vboost", [None, 4])
def test_without_gpus_or_a_level_nothing_is_touched(
    tmp_path: Path, asked: list[object], vboost: int | None
) -> None:
    scenario = ON_GPUS if vboost is None else building.SCENARIO
    with boosted_for(scenario, session(tmp_path, vboost), Lease((SECOND,)), print):
        pass
    assert asked == []


@pytest.mark.parametrize(
    ("lease", "told"),
    [
        (Lease(), "no GPU is leased"),
        (Lease((SECOND,), synthetic=True), "simulated"),
        (Lease((replace(SECOND, label="MIG-12345678"),)), "MIG"),
    ],
)
def test_gpus_that_have_no_slider_are_refused(
    tmp_path: Path, asked: list[object], lease: Lease, told: str
) -> None:
    with (
        pytest.raises(InputError, match=told),
        boosted_for(ON_GPUS, session(tmp_path), lease, print),
    ):
        pytest.fail("nothing is started")
    assert asked == []
