"""Ranks of another build by mpirun: its own programs, found first on every host."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO

from perfgate.core.command import Command
from perfgate.core.installation import Installation
from perfgate.core.locations import Locations
from perfgate.core.programs import MPIRUN, TRTLLM_BENCH, TRTLLM_LAUNCH
from perfgate.launchers.mpirun.argv import by_mpirun, started_by
from perfgate.launchers.site import MpirunSite
from perfgate.scenarios.scenario import Hardware, Launch

TWO_NODES = replace(SCENARIO, hardware=Hardware("H200", 16, 2), launch=Launch("mpirun"))


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prefix of an old build; the one under test is in the environment."""
    for folder in ("old", "tested"):
        (tmp_path / folder / "bin").mkdir(parents=True)
        for program in (TRTLLM_BENCH, TRTLLM_LAUNCH, MPIRUN):
            file = tmp_path / folder / "bin" / program.executable
            file.write_text("#!/bin/sh\n")
            file.chmod(0o755)
            monkeypatch.setenv(program.variable, str(tmp_path / "tested/bin" / program.executable))
    return tmp_path / "old"


def test_every_rank_runs_the_other_builds_programs(old: Path) -> None:
    where = Locations(hosts=("n1", "n2"), build=Installation(str(old)))
    command = Command((*where.find(TRTLLM_BENCH), "throughput"), where.engine_environment)
    launched = by_mpirun(command, TWO_NODES, where, None)
    assert launched.argv[0] == str(old.parent / "tested/bin/mpirun"), "what starts both is the same"
    assert launched.argv[-3:] == (
        *(f"{old}/bin/trtllm-llmapi-launch", f"{old}/bin/trtllm-bench", "throughput"),
    )
    argv = started_by(
        MPIRUN.find(),
        launched,
        Path("/run"),
        "n1",
        MpirunSite(),
        ssh_port=None,
        mark="m",
        environment={"PATH"},
        root=False,
    )
    assert argv[argv.index("PATH") - 1] == "-x"
    assert launched.env["PATH"].startswith(f"{old}/bin:")
