"""Looking: which checks apply to a scenario, and what they amount to together."""

import os
import shlex
import time
from dataclasses import replace
from pathlib import Path

import pytest
from building import MACHINE, SCENARIO
from made_tools import Made, tools
from tables import each, tables_of

from perfgate.core.errors import RunError
from perfgate.core.programs.locations import Locations
from perfgate.machine.leases.devices import Device
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget, inspection, look
from perfgate.machine.preflight.check import Need, need_of
from perfgate.scenarios import scenario as module
from perfgate.scenarios.scenario import Hardware, Launch

OF_A_CPU = "run folder, own store, open files, ports, date, engine, clients, model"
H200 = Hardware("H200", 2)
QUICK_START = "quick-start-recipe-for-deepseek-r1-on-trtllm.md"
SLURM = PreflightTarget(by_slurm=True)
LOAD = SCENARIO.workload


@pytest.fixture(autouse=True)
def plain_environment(suite_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "PERFGATE_FAKE_GPUS", "PERFGATE_CONTAINER_IMAGE"):
        monkeypatch.delenv(name, raising=False)


def made(**changes):
    return tools(Made(), **changes)


def checks(have=None, where: PreflightTarget | None = None) -> dict[str, Check]:
    have = have or made()
    report = look(have.scenario, have, MACHINE, where or PreflightTarget())
    return {check.name: check for check in report.checks}


# What a scenario needs

TP8 = module.EngineChoice("tensorrt-llm", module.EngineSettings(tp=8))
EIGHT = replace(SCENARIO, hardware=Hardware("B200", 8), engine=TP8)
OF_EIGHT = Need(gpus=8, gpu="B200", gpus_in_all=8, connections=4)
TWO_NODES = {"hardware": Hardware("B200", 16, nodes=2), "launch": Launch("mpirun")}
DOCUMENTED = {"model": replace(SCENARIO.model, weights=module.Weights(80, 395))}
SUMS = module.AccuracyTask("lm_eval", "sums", 5, concurrency=64)
UNCAPPED = replace(LOAD, concurrency=(1,), requests=5000, capped=False)


@each(
    ("scenario", "facts", "need"),
    [
        (SCENARIO, {"bytes": 9}, Need(weights_bytes=9, connections=4)),
        (EIGHT, None, OF_EIGHT),
        (replace(EIGHT, **TWO_NODES), None, replace(OF_EIGHT, nodes=2, gpus_in_all=16)),
        (replace(EIGHT, **DOCUMENTED), {"bytes": 7}, replace(OF_EIGHT, weights_bytes=395 * 2**30)),
        (EIGHT, {"bytes": 7}, replace(OF_EIGHT, weights_bytes=7)),
        (EIGHT, {"source": "hub"}, OF_EIGHT),
        (replace(SCENARIO, workload=UNCAPPED), None, Need(connections=5000)),
        (replace(SCENARIO, accuracy=(SUMS,)), None, Need(connections=64)),
        (replace(SCENARIO, workload=None, accuracy=()), None, Need()),
    ],
)
def test_what_a_scenario_needs(scenario, facts, need: Need) -> None:
    assert need_of(scenario, model_facts=facts) == need


# Which checks apply


def test_a_cpu_scenario() -> None:
    found = checks()
    assert ", ".join(found) == OF_A_CPU
    assert found["engine"].outcome == "ok"
    inspection.refuse_unfit(PreflightReport(tuple(found.values())), "small-serve", "node7")
    from_hub = tools(Made(model_facts={"name": "a/B", "source": "hub"}))
    assert checks(from_hub)["model cache"].outcome == "unknown"


def test_gpus_that_are_well(install) -> None:
    install({}, {})
    have = made(hardware=H200, source=module.Source(QUICK_START, "Models"))
    report = look(have.scenario, have, MACHINE)
    first = {check.name: check.outcome for check in report.checks[:13]}
    assert [*first][:3] == ["gpus", "driver", "gpu split"]
    assert set(first.values()) == {"ok"}
    assert report.observed["cpu"] == "72 cores of Grace"
    assert report.observed["driver"] == "580.65.06"
    assert "swap" in report.observed
    big = tools(Made(model_facts={"name": "Big", "bytes": 300 * 2**30}), hardware=H200)
    assert checks(big)["gpu memory"].outcome == "failed"


def test_leased_gpus_are_those_looked_at(install) -> None:
    install({}, {}, {"uncorrected": 1})
    have = made(hardware=Hardware("H200", 1))
    leased = [Device("gpu-GPU-2", "2", "2", "NVIDIA H200", "GPU-2")]
    assert checks(have)["gpu errors"].outcome == "ok"
    assert checks(have, PreflightTarget(leased=leased))["gpu errors"].outcome == "failed"


@pytest.mark.parametrize("by", ["srun", "sbatch", "mpirun"])
def test_on_a_node_that_a_launcher_found_its_gpus_are_looked_at(by, install) -> None:
    install({}, {})
    have = made(hardware=Hardware("H200", 4, 2), launch=Launch(by))
    found = checks(have, PreflightTarget(on_node=True))
    assert found["gpus"].outcome == "ok"
    assert {"slurm", "hosts", "launch"}.isdisjoint(found)


# What is beyond this machine


@each("by", ["srun", "sbatch"])
def test_slurm_is_asked_and_gpus_are_not(by, programs) -> None:
    programs("scontrol", "echo 'Slurmctld(primary) at ctl is UP'")
    have = made(hardware=H200, launch=Launch(by))
    found = checks(have)
    assert "launch" in found
    assert "launch" not in checks(have, SLURM)  # then perfgate's launcher finds the nodes
    assert (found["gpus"].outcome, found["slurm"].outcome) == ("unknown", "ok")
    assert {"gpu memory", "container"}.isdisjoint(found)


PLACES = {"slurm": SLURM, "docker": PreflightTarget(runtime="docker")}


@each("program, says, status, place, name, outcome, end", tables_of("machine_tables")["programs"])
def test_what_programs_say(programs, monkeypatch, program, says, status, place, name, outcome, end):
    monkeypatch.setenv("PERFGATE_CONTAINER_IMAGE", "img")
    programs(program, f"echo {shlex.quote(says)}\nexit {status}")
    check = checks(where=PLACES[place])[name]
    assert check.outcome == outcome
    assert check.found.endswith(end)


def test_programs_speak_english_in_time(programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    programs("scontrol", "echo $LC_ALL is UP")
    assert checks(where=SLURM)["slurm"].found == "C is UP"
    programs("scontrol", "exec sleep 30")
    assert inspection._ask(("scontrol", "ping"), 0.2).text == "no answer in 0.2 s"
    assert inspection._ask(("no-such-program",)).text == "no no-such-program on PATH"


def hosts(*names: str, reach: bool = True) -> tuple[str, str]:
    have = made(hardware=Hardware("H200", 12, nodes=6), launch=Launch("mpirun", ssh_port=2233))
    have = replace(have, locations=Locations(hosts=names))
    check = checks(have, PreflightTarget(reach=reach))["hosts"]
    return check.outcome, check.found


SIX = [f"node{number}" for number in range(1, 7)]


def test_hosts_are_asked_at_the_same_time_and_for_nothing(programs, install) -> None:
    install({}, {})
    log = programs("ssh", "sleep 0.5")
    began = time.monotonic()
    assert hosts(*SIX, "one more") == ("ok", ", ".join(SIX))
    assert time.monotonic() - began < 2.5
    assert "-o BatchMode=yes -o ConnectTimeout=5 -p 2233 -- node1 true" in log.read_text()
    assert len(log.read_text().splitlines()) == 6
    assert hosts(*SIX[:-1], "-oProxyCommand=x")[0] == "ok"
    assert log.read_text().count("-- -oProxyCommand=x true") == 1  # never taken for an option


def test_hosts_that_are_not_there(programs, install) -> None:
    install({}, {})
    says = 'case "$*" in *2\\ true) echo "No\nway" >&2;; *4\\ true);; *) exit 0; esac; exit 9'
    log = programs("ssh", says)
    assert hosts(*SIX) == ("failed", "node2: No way; node4: status 9")
    log.unlink()
    assert hosts("node1") == ("failed", "node1 in PERFGATE_HOSTS")
    assert hosts() == ("failed", "none in PERFGATE_HOSTS")
    unasked = f"{', '.join(SIX)}: checked only with --reach, which contacts other machines"
    assert hosts(*SIX, reach=False) == ("unknown", unasked)
    assert not log.exists()


# What it amounts to


def test_a_refusal_tells_the_first_failures_and_how_to_mend_them(install) -> None:
    install({"uncorrected": 1, "nvmlDeviceGetMigMode": [1, 1]}, {})
    build, model = RunError("unknown", "no engine"), RunError("model_file", "no model")
    have = tools(Made(build=build, model_facts=model), hardware=H200)
    with pytest.raises(RunError) as caught:
        inspection.refuse_unfit(look(have.scenario, have, MACHINE), "small-serve", "node7")
    assert caught.value.failure == "unfit_machine"
    why = "gpu split: GPU 0: split (MIG); gpu errors: GPU 0: 1 uncorrected; engine: "
    assert caught.value.message.startswith(f"node7 is not fit for small-serve: {why}")
    assert caught.value.message.endswith("; and 1 more")
    assert "-mig 0" in caught.value.hint
    assert "dmesg" in caught.value.hint
    no_model = PreflightReport((Check("model", "failed", "none"),))
    with pytest.raises(RunError) as caught:
        inspection.refuse_unfit(no_model, "small-serve", "node7")
    assert caught.value.hint == "perfgate doctor --scenario small-serve"


def test_every_check_is_documented_and_changes_nothing(install, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    install({}, {})
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "preflight.md").read_text()
    others = ["driver", "model cache", "evaluators", "dataset", "options", "container", "slurm"]
    for name in (*checks(made(hardware=H200)), *others, "hosts"):
        assert f"| {name} |" in page, name
    assert not (tmp_path / "runs").exists()
    assert not Path(os.environ["PERFGATE_HOME"]).exists()
