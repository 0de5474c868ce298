"""Looking: which checks apply to a scenario, and what they amount to together."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest
from building import MACHINE, SCENARIO, machine
from made_tools import Made, tools
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.machine.leases.devices import Device
from perfgate.machine.nvml import Unreadable
from perfgate.machine.preflight import (
    Check,
    PreflightReport,
    PreflightTarget,
    look,
    refuse_unfit,
)
from perfgate.machine.preflight.check import Need
from perfgate.machine.preflight.gpus import GPU_RULES, GpuLook
from perfgate.machine.preflight.inspection import judge_driver, judge_presence
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.scenario import Hardware, Launch, Source

HOST = ["run folder", "own store", "open files", "ports", "date"]
SOFTWARE = ["engine", "clients", "model"]
H200 = Hardware("H200", 2)
QUICK_START = "quick-start-recipe-for-deepseek-r1-on-trtllm.md"


@pytest.fixture(autouse=True)
def plain_environment(suite_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "PERFGATE_FAKE_GPUS", "PERFGATE_CONTAINER_IMAGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def answers(programs):
    """Puts programs on PATH that say something and end with a status."""
    return lambda name, says, status=0: programs(name, f"echo {shlex.quote(says)}\nexit {status}")


def made(**changes) -> Toolchain:
    return tools(Made(), **changes)


def seen(*names: str, of: int | None = None) -> GpuLook:
    """A look that found GPUs of these models; the first ones are of the scenario's."""
    gpus = [Device(f"gpu-{number}", "", str(number), name) for number, name in enumerate(names)]
    return GpuLook(tuple(gpus[:of]), names, "580.65.06", "13.0")


def checks(*arguments) -> tuple[Check, ...]:
    return look(*arguments).checks


def outcomes(found: tuple[Check, ...]) -> dict[str, str]:
    return {check.name: check.outcome for check in found}


def test_a_cpu_scenario() -> None:
    found = checks(SCENARIO, made(), MACHINE)
    assert list(outcomes(found)) == HOST + SOFTWARE
    assert outcomes(found)["engine"] == "ok"
    refuse_unfit(PreflightReport(found), "small-serve", "node7")


def test_gpus_that_are_well(install) -> None:
    install({}, {})
    have = made(hardware=H200)
    report = look(have.scenario, have, machine("NVIDIA H200", "NVIDIA H200"))
    of_gpus = list(outcomes(report.checks))[:12]
    assert of_gpus == ["gpus", *GPU_RULES]
    assert {outcomes(report.checks)[name] for name in of_gpus} == {"ok"}
    assert report.observed["driver"] == "580.65.06"
    assert report.observed["cuda of the driver"] == "13.0"


def test_weights_that_do_not_fit_into_the_gpus(install) -> None:
    install({}, {})
    have = tools(Made(model={"name": "Big", "bytes": 300 * 2**30}), hardware=H200)
    found = checks(have.scenario, have, MACHINE)
    assert outcomes(found)["gpu memory"] == "failed"


def test_a_model_from_the_hub_needs_room(install) -> None:
    have = tools(Made(model={"name": "lab/Small", "source": "hub"}))
    assert outcomes(checks(have.scenario, have, MACHINE))["model cache"] == "unknown"


def test_leased_gpus_are_those_looked_at(install) -> None:
    install({}, {}, {"uncorrected": 1})
    have = made(hardware=Hardware("H200", 1))
    leased = [Device("gpu-GPU-2", "2", "2", "NVIDIA H200", "GPU-2")]
    well = checks(have.scenario, have, MACHINE)
    sick = checks(have.scenario, have, MACHINE, PreflightTarget(leased=leased))
    assert (outcomes(well)["gpu errors"], outcomes(sick)["gpu errors"]) == ("ok", "failed")


@pytest.mark.parametrize("by", ["srun", "sbatch"])
def test_slurm_is_asked_and_gpus_are_not(by, answers) -> None:
    answers("scontrol", "Slurmctld(primary) at ctl is UP")
    have = made(hardware=H200, launch=Launch(by))
    found = outcomes(checks(have.scenario, have, MACHINE))
    assert found["gpus"] == "unknown"
    assert found["slurm"] == "ok"
    assert {"gpu memory", "container"}.isdisjoint(found)
    answers("scontrol", "Slurmctld(primary) at ctl is DOWN", 1)
    assert outcomes(checks(have.scenario, have, MACHINE))["slurm"] == "failed"


@pytest.mark.parametrize("by", ["srun", "sbatch", "mpirun"])
def test_on_a_node_that_a_launcher_found_its_gpus_are_looked_at(by, install) -> None:
    install({}, {})
    have = made(hardware=Hardware("H200", 4, 2), launch=Launch(by))
    found = outcomes(
        checks(have.scenario, have, MACHINE, PreflightTarget(by_slurm=True, on_node=True))
    )
    assert found["gpus"] == "ok"
    assert {"slurm", "hosts"}.isdisjoint(found)


def test_slurms_containers_need_the_plugin(answers, monkeypatch: pytest.MonkeyPatch) -> None:
    answers("scontrol", "Slurmctld(primary) at ctl is UP")
    answers("srun", "--mpi=type")
    monkeypatch.setenv("PERFGATE_CONTAINER_IMAGE", "img")
    where = PreflightTarget(by_slurm=True)
    assert outcomes(checks(SCENARIO, made(), MACHINE, where))["container"] == "failed"
    answers("srun", "--container-image=[USER@]")
    assert outcomes(checks(SCENARIO, made(), MACHINE, where))["container"] == "ok"


def test_dockers_daemon(answers) -> None:
    answers("docker", "27.3.1")
    where = PreflightTarget(runtime="docker")
    assert outcomes(checks(SCENARIO, made(), MACHINE, where))["container"] == "ok"
    answers("docker", "Cannot connect to the Docker daemon", 1)
    assert outcomes(checks(SCENARIO, made(), MACHINE, where))["container"] == "failed"


def test_hosts_are_touched_only_when_asked_to(answers, install, tmp_path: Path) -> None:
    install({}, {})
    answers("ssh", "")
    have = made(hardware=Hardware("H200", 4, nodes=2), launch=Launch("mpirun"))
    have = replace(have, locations=Locations(hosts=("a", "b", "c")))
    found = checks(have.scenario, have, MACHINE)
    assert outcomes(found)["hosts"] == "unknown"
    found = checks(have.scenario, have, MACHINE, PreflightTarget(reach=True))
    assert next(check.found for check in found if check.name == "hosts") == "a, b"


@each(
    ("look", "outcome", "found"),
    [
        (seen("NVIDIA H200", "NVIDIA H200"), "ok", "2×NVIDIA H200: 0, 1"),
        (seen("NVIDIA H200", "NVIDIA A2", of=1), "failed", "1×NVIDIA A2, 1×NVIDIA H200"),
        (seen(), "failed", "none"),
        (Unreadable("no answer", "hangs"), "failed", "no answer"),
    ],
)
def test_name_and_number(look: GpuLook | Unreadable, outcome: str, found: str) -> None:
    check = judge_presence(look, Need(gpus=2, gpu="H200"), H200, MACHINE)
    assert (check.outcome, check.found) == (outcome, found)


def test_nvidia_smi_alone_is_not_enough_to_be_sure() -> None:
    look, need = Unreadable("no bindings"), Need(gpus=2, gpu="H200")
    both = machine("NVIDIA H200", "NVIDIA H200")
    assert judge_presence(look, need, H200, both).outcome == "unknown"
    assert judge_presence(look, need, H200, MACHINE).outcome == "failed"


@each(
    ("driver", "outcome"),
    [
        ("580.65.06", "ok"),
        ("575", "ok"),
        ("570.124.06", "warning"),
        ("unreadable", "unknown"),
        (Unreadable("no answer"), "unknown"),
    ],
)
def test_the_documents_driver(driver, outcome: str) -> None:
    (check,) = judge_driver(driver, Need(driver=575))
    assert check.outcome == outcome
    assert judge_driver(driver, Need()) == ()


def test_the_driver_of_the_quick_start(install) -> None:
    have = made(hardware=H200, source=Source(QUICK_START, "Models"))
    install({}, {})
    assert outcomes(checks(have.scenario, have, MACHINE))["driver"] == "ok"
    install(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    assert outcomes(checks(have.scenario, have, MACHINE))["driver"] == "unknown"


def test_a_refusal_tells_the_first_failures_and_how_to_mend_them(install) -> None:
    install({"uncorrected": 1, "nvmlDeviceGetMigMode": [1, 1]}, {})
    have = tools(
        Made(build=RunError("unknown", "no engine"), model=RunError("model_file", "no model")),
        hardware=H200,
    )
    with pytest.raises(RunError) as caught:
        refuse_unfit(look(have.scenario, have, MACHINE), "small-serve", "node7")
    assert caught.value.failure == "unfit_machine"
    assert caught.value.message.startswith(
        "node7 is not fit for small-serve: gpu split: GPU 0: split (MIG); "
        "gpu errors: GPU 0: 1 uncorrected; engine: "
    )
    assert caught.value.message.endswith("; and 1 more")
    assert "-mig 0" in caught.value.hint
    assert "dmesg" in caught.value.hint
    with pytest.raises(RunError) as caught:
        refuse_unfit(PreflightReport((Check("model", "failed", "none"),)), "small-serve", "node7")
    assert caught.value.hint == "perfgate doctor --scenario small-serve"


def test_every_check_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "preflight.md").read_text()
    others = [*HOST, *SOFTWARE, "gpus", "driver", "shared memory", "locked memory", "model cache"]
    others += ["evaluators", "dataset", "options", "container", "slurm", "hosts"]
    for name in (*GPU_RULES, *others):
        assert f"| {name} |" in page, name


def test_only_what_it_says_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    look(SCENARIO, made(), MACHINE)
    assert not (tmp_path / "runs").exists()
    assert not Path(os.environ["PERFGATE_HOME"]).exists()
