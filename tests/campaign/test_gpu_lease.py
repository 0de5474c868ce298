"""Leasing: a start has as many GPUs as it needs; all of them where the site has commands."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import building
import pytest

from perfgate.campaign.session import Session
from perfgate.campaign.start_guard import leased
from perfgate.core.errors import RunError
from perfgate.judging.rules.performance import Rule
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.site import Site
from perfgate.machine.leases import Device, GpuPool
from perfgate.machine.leases.devices import Devices
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.scenario import Hardware

ON_A_GPU = replace(building.SCENARIO, hardware=Hardware("B200", 1, 1))
FIRST = Device("gpu-a", "0", "0", "NVIDIA B200", "GPU-aaaa")
SECOND = Device("gpu-b", "1", "1", "NVIDIA B200", "GPU-bbbb")


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("PERFGATE_LEASES", str(folder))


@pytest.mark.parametrize(
    ("site", "other"), [(Site(), "has it"), (Site(after=(("true",),)), "gpus_busy")]
)
def test_commands_of_the_site_may_change_all_gpus_so_that_a_start_has_them(
    tmp_path: Path, site: Site, other: str
) -> None:
    pool = GpuPool(Devices((FIRST, SECOND), chosen=False, made_up=False), dict(os.environ))
    session = Session(
        RunFolder(tmp_path),
        building.MACHINE,
        LocalLauncher(),
        Rule(),
        pool=pool,
        site=replace(site, wait_for_gpus_s=0),
    )
    others: list[str] = []

    def lease_the_second() -> None:
        alone = replace(pool, devices=replace(pool.devices, gpus=(SECOND,)))
        try:
            with alone.lease(1, whole=False, run="b", wait_s=0, tell=print):
                others.append("has it")
        except RunError as error:
            others.append(error.failure)

    with leased(ON_A_GPU, session, print) as lease:
        assert len(lease.gpus) == 1
        thread = threading.Thread(target=lease_the_second)  # one thread holds one lease
        thread.start()
        thread.join()
    assert others == [other]
