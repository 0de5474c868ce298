"""Leasing: the slider of exactly the leased GPUs is set, while they are leased."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import building
import pytest
from made_smi import Smi, smi

from perfgate.campaign import vboost as boosting
from perfgate.campaign.gpu_lease import leased
from perfgate.campaign.session import Session
from perfgate.core.errors import InputError, RunError
from perfgate.gate.performance import Rule
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.machine.leases import Device, GpuPool
from perfgate.machine.leases.devices import Devices
from perfgate.runs.records import RunFolder
from perfgate.scenarios.scenario import Hardware

__all__ = ["smi"]

ON_A_GPU = replace(building.SCENARIO, hardware=Hardware("B200", 1, 1))
FIRST = Device("gpu-a", "0", "0", "NVIDIA B200", "GPU-aaaa")
SECOND = Device("gpu-b", "GPU-b", "1", "NVIDIA B200", "GPU-bbbb")  # named by its UUID


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("PERFGATE_LEASES", str(folder))


def pool_of(*gpus: Device, made_up: bool = False) -> GpuPool:
    return GpuPool(Devices(gpus, chosen=True, made_up=made_up), dict(os.environ))


def session(tmp_path: Path, *gpus: Device, vboost: int | None = 4, **changes) -> Session:
    given = {"pool": pool_of(*gpus or (FIRST, SECOND)), "lease_wait_s": 0, **changes}
    return Session(
        RunFolder(tmp_path), building.MACHINE, LocalLauncher(), Rule(), vboost=vboost, **given
    )


def test_the_slider_of_the_leased_gpu_and_of_no_other(smi: Smi, tmp_path: Path) -> None:
    with leased(ON_A_GPU, session(tmp_path, SECOND), print) as lease:
        assert [gpu.uuid for gpu in lease.gpus] == ["GPU-bbbb"]
        assert smi.levels == {"0": 0, "1": 4}
    assert smi.levels == {"0": 0, "1": 2}


def test_the_gpu_is_leased_before_it_is_set_and_until_it_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[str] = []

    def try_to_have_it() -> None:
        try:
            with pool_of(FIRST).lease(1, whole=False, run="b", wait_s=0, tell=print):
                others.append("has it")
        except RunError as error:
            others.append(error.failure)

    def in_a_thread() -> None:  # one thread holds one lease
        thread = threading.Thread(target=try_to_have_it)
        thread.start()
        thread.join()

    @contextmanager
    def boosted(level: int, gpus: Sequence[str]) -> Iterator[dict[str, int]]:
        assert (level, gpus) == (4, ["0"])
        in_a_thread()
        yield {}
        in_a_thread()

    monkeypatch.setattr(boosting, "boosted", boosted)
    with leased(ON_A_GPU, session(tmp_path), print):
        pass
    in_a_thread()
    assert others == ["gpus_busy", "gpus_busy", "has it"]


def test_a_start_that_fails_has_it_put_back(smi: Smi, tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match="made up"),
        leased(ON_A_GPU, session(tmp_path), print),
    ):
        raise RunError("oom", "made up")
    assert smi.levels == {"0": 0, "1": 2}
    assert [line["argv"][2] for line in smi.settings] == ["0", "0"]


def test_without_the_right_nothing_is_started_and_the_lease_is_free(
    smi: Smi, tmp_path: Path
) -> None:
    smi.set(levels={"0": 0, "1": 2}, refuse="permission")
    for _ in range(2):  # the second finds the GPU free
        with (
            pytest.raises(RunError, match="setting vboost is not permitted") as caught,
            leased(ON_A_GPU, session(tmp_path), print),
        ):
            pytest.fail("nothing is started")
        assert caught.value.failure == "unfit_machine"


def test_no_slider_is_touched_where_none_is_asked_for_or_no_gpu_is_used(
    smi: Smi, tmp_path: Path
) -> None:
    with leased(ON_A_GPU, session(tmp_path, vboost=None), print) as lease:
        assert len(lease.gpus) == 1
    with leased(building.SCENARIO, session(tmp_path), print):
        pass
    assert smi.calls == []


def test_made_up_gpus_never_reach_those_that_are_there(smi: Smi, tmp_path: Path) -> None:
    for synthetic in (False, True):
        played = session(tmp_path, synthetic=synthetic, pool=pool_of(FIRST, made_up=True))
        with pytest.raises(InputError, match="simulated"), leased(ON_A_GPU, played, print):
            pytest.fail("nothing is started")
    assert smi.calls == []


def test_without_a_pool_it_is_not_known_whose_slider(smi: Smi, tmp_path: Path) -> None:
    alone = session(tmp_path, pool=None)
    with pytest.raises(InputError, match="no GPU is leased"), leased(ON_A_GPU, alone, print):
        pytest.fail("nothing is started")
    assert smi.calls == []
