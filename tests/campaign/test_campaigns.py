"""Campaigns: what a process cannot run, and why, before anything is started."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import building
import pytest
from plain_records import recorded

from perfgate.campaign.campaign import Session
from perfgate.campaign.campaigns import Campaigns
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.program_query import ContainerQuery
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.judging.rules.performance import Rule
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import EngineChoice, Hardware, Launch, Scenario, Workload

OFFLINE = Workload("trtllm-bench", "synthetic", 64, 32, (4,), requests=8)
ON_GPUS = replace(
    building.SCENARIO,
    hardware=Hardware("GB200", 8, 2),
    engine=EngineChoice("tensorrt-llm"),
    accuracy=(),
)


def suite(tmp_path: Path, *, synthetic: bool = False) -> Campaigns:
    return Campaigns(
        Session(
            run=RunFolder(tmp_path),
            machine=building.MACHINE,
            launcher=LocalLauncher(),
            rule=Rule(),
            cache=tmp_path,
            synthetic=synthetic,
        )
    )


def first(scenario: Scenario) -> Probe:
    return all_probes(scenario)[0]


def test_a_server_that_slurm_starts_is_not_reached_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    served = replace(ON_GPUS, launch=Launch("srun"))
    told = "a server that srun starts may listen on any node: use --launcher slurm"
    assert suite(tmp_path).why_not(first(served)) == told
    offline = replace(served, workload=OFFLINE)
    assert suite(tmp_path).why_not(first(offline)) is None


def test_without_slurm_its_scenarios_are_not_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    launched = replace(ON_GPUS, workload=OFFLINE, launch=Launch("sbatch"))
    assert suite(tmp_path).why_not(first(launched)) == "needs Slurm: no sbatch on PATH"


class Boxed(LocalLauncher):
    """A launcher whose programs are in a container."""

    name = "boxed"

    def locations(self, here: Locations, scenario: Scenario, version: str | None) -> Locations:
        return replace(here, inside=cast("ContainerQuery", object()))


def test_a_rehearsal_has_no_stand_ins_in_a_container(tmp_path: Path) -> None:
    rehearsed = suite(tmp_path, synthetic=True)
    rehearsed.session = replace(rehearsed.session, launcher=Boxed())
    with pytest.raises(InputError, match="not in a container") as caught:
        rehearsed.build_of(ON_GPUS)
    assert "PERFGATE_SITE" in str(caught.value)


def test_a_rehearsal_needs_no_gpu_but_a_stand_in(tmp_path: Path) -> None:
    rehearsed = suite(tmp_path, synthetic=True)
    assert suite(tmp_path).why_not(first(ON_GPUS)) is not None
    assert rehearsed.why_not(first(ON_GPUS)) is None
    other = first(building.SCENARIO)
    assert rehearsed.why_not(other) == "a rehearsal has no stand-in for llama.cpp"


def test_what_the_build_could_not_be_asked_is_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "keys of the LLM-API YAML: not asked: no pydantic"
    build = EngineBuild("tensorrt-llm", "1.3.0", "0123abc")
    monkeypatch.setattr(TensorRTLLM, "build", lambda *_: build)
    monkeypatch.setattr(TensorRTLLM, "verify", lambda *_: (why,))
    monkeypatch.setattr(Toolchain, "require", lambda _: None)
    monkeypatch.setattr("perfgate.campaign.campaigns.commands_to_verify", lambda *_: ())
    campaigns = suite(tmp_path)
    campaigns.session = replace(
        campaigns.session, run=RunFolder.create(tmp_path / "run", {"synthetic": False})
    )
    campaigns.toolchain(ON_GPUS)
    (line,) = recorded(campaigns.session.run, "unasked")
    assert (line["scenario"], line["why"]) == (ON_GPUS.id, [why])
    assert line["build"]["commit"] == "0123abc"
    assert not list(recorded(campaigns.session.run, "moved_defaults"))
    monkeypatch.setattr(TensorRTLLM, "verify", lambda *_: ())
    monkeypatch.setattr(TensorRTLLM, "moved_defaults", lambda *_: ("default of a: found 1",))
    campaigns.toolchain(ON_GPUS)
    assert len(recorded(campaigns.session.run, "unasked")) == 1, "all was asked: nothing to say"
    (line,) = recorded(campaigns.session.run, "moved_defaults")
    assert (line["scenario"], line["defaults"]) == (ON_GPUS.id, ["default of a: found 1"])
    campaigns.session.run.close()
