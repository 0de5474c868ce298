import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from building import MACHINE, machine
from command_line import Perfgate

from perfgate.cli.main import main
from perfgate.core.environment_variables import variables_set
from perfgate.core.paths import PACKAGED, scenario_folders
from perfgate.machine.preflight import Check, PreflightReport, PreflightTarget
from perfgate.machine.preflight.software import judge_software
from perfgate.scenarios.files import LoadedSuite, load_suite

Capture = pytest.CaptureFixture[str]

REPORT = PreflightReport(
    (
        Check("gpus", "ok", "8×NVIDIA B200: 0, 1", "8×B200"),
        Check("gpu persistence", "warning", "GPU 1: off", "persistence mode on", "-pm 1 as root"),
        Check("hosts", "unknown", "checked only with --reach"),
    ),
    {"driver": "580.65.06"},
)
SICK = Check("gpu errors", "failed", "GPU 0: 1 uncorrected", "none", "reset the GPU")


@pytest.fixture(autouse=True)
def everything_but_gpus(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs; every program there; no variables of whoever runs the tests."""
    monkeypatch.setattr("perfgate.cli.doctor.detect", lambda: MACHINE)
    monkeypatch.setattr("perfgate.cli.doctor.judge_software", lambda tools: ())
    monkeypatch.setattr("perfgate.cli.doctor.variables_set", lambda environment: {})


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch):
    """Sets what the preflight finds; keeps what it was asked."""
    asked: list[tuple[str, PreflightTarget]] = []

    def set_report(report: PreflightReport) -> list[tuple[str, PreflightTarget]]:
        def look(scenario, tools, here, where) -> PreflightReport:
            assert (tools.scenario, here) == (scenario, MACHINE)
            asked.append((scenario.id, where))
            return report

        monkeypatch.setattr("perfgate.cli.doctor_selection.look", look)
        return asked

    return set_report


def test_what_can_run_and_why_not_the_rest(
    monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    lines = perfgate.printed("doctor").splitlines()
    assert lines[:3] == [
        "machine: node7, 72 cores of Grace",
        "memory: 16.0 GiB; GPUs: none (no nvidia-smi on PATH)",
        "",
    ]
    assert [line.split(None, 1) for line in lines[3:]] == [
        ["scenario", "can run here"],
        ["h200-serve", "no: needs 1×H200, found none (no nvidia-smi on PATH) [fix 1]"],
        ["local-smollm2-serve", "yes"],
        [],
        ["fix", "1: use a machine that has them, or try it here: pytest --rehearse"],
    ]
    assert perfgate.plain("doctor") == {
        "machine": json.loads(json.dumps(asdict(MACHINE))),
        "cannot_run": {
            "h200-serve": "needs 1×H200, found none (no nvidia-smi on PATH)",
            "local-smollm2-serve": None,
        },
        "fixes": {"h200-serve": "use a machine that has them, or try it here: pytest --rehearse"},
        "variables": {},
        "shared_python": None,
    }
    monkeypatch.setattr("perfgate.cli.doctor.detect", lambda: machine("NVIDIA H200", "NVIDIA H200"))
    out = perfgate.printed("doctor")
    assert "GPUs: 2×NVIDIA H200, driver 570.1\n" in out
    assert out.count("  yes\n") == 2


def test_what_is_missing_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    missing = Check("clients", "failed", "no aiperf", "", "install it")
    no_lm_eval = Check("evaluators", "failed", "no lm_eval", "", "pip install it")
    unasked = Check("model", "unknown", "from the hub")
    closer = "perfgate doctor --scenario local-smollm2-serve"
    for checks, told, fix in (
        ((unasked, missing), "no: no aiperf [fix 2]", "install it"),
        ((missing, SICK), "no: no aiperf (and 1 more) [fix 2]", "install it"),
        ((replace(missing, hint=""),), "no: no aiperf [fix 2]", closer),
        ((no_lm_eval, missing), "no: no aiperf (and 1 more) [fix 2]", "install it"),
        ((no_lm_eval,), "all but accuracy: no lm_eval [fix 2]", "pip install it"),
        ((unasked,), "yes", None),
    ):
        monkeypatch.setattr("perfgate.cli.doctor.judge_software", lambda tools, it=checks: it)
        out = perfgate.printed("doctor")
        assert f"local-smollm2-serve  {told}\n" in out
        assert f"\nfix 2: {fix}" in out if fix else "fix 2" not in out


def test_a_module_of_an_absent_engine_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, perfgate: Perfgate
) -> None:
    """A version of TensorRT-LLM is told, and a Python is found; the package is nowhere."""
    monkeypatch.setattr("perfgate.cli.doctor.judge_software", judge_software)
    monkeypatch.setenv("TRT_LLM_VERSION", "1.0.0")
    monkeypatch.setenv("PATH", f"{executables(tmp_path)}:{os.environ['PATH']}")
    scenario = "gb200-r1-0528-fp4-wide-ep-serve"
    monkeypatch.delenv("PERFGATE_ROOT")
    monkeypatch.setattr("perfgate.cli.doctor.load", lambda folders: documented(scenario))
    out = perfgate.printed("doctor")
    assert "no: benchmark_serving is not installed: " in out
    assert "set PERFGATE_PROGRAM_BENCHMARK_SERVING to the Python that has it" in out
    assert main(["doctor", "--scenario", scenario, "--format", "json"]) == 1
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["clients"]["outcome"] == "failed"
    assert checks["engine"]["outcome"] == "ok"
    assert checks["launch"]["outcome"] == "ok"


def documented(name: str) -> LoadedSuite:
    """The suite with one of its documented scenarios alone."""
    suite = load_suite(scenario_folders([PACKAGED]))
    return replace(suite, scenarios=tuple(one for one in suite.scenarios if one.id == name))


def executables(folder: Path) -> Path:
    """A folder for PATH with programs of TensorRT-LLM and Slurm that say nothing."""
    for name in ("trtllm-bench", "trtllm-serve", "trtllm-llmapi-launch", "srun"):
        file = folder / name
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    return folder


def test_what_is_worth_a_look_is_told(
    found, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    monkeypatch.setattr("perfgate.cli.doctor.variables_set", variables_set)
    monkeypatch.setenv("PERFGATE_PROGRAM_AIPERF", "/opt/aiperf --api-key=abc")
    monkeypatch.setattr("perfgate.cli.doctor.shared_python", lambda: "shared with vllm 1")
    out = perfgate.printed("doctor")
    assert "\nPERFGATE_PROGRAM_AIPERF=/opt/aiperf --api-key=***\n" in out
    assert "\nwarning: shared with vllm 1\n  fix: install perfgate into" in out
    found(REPORT)
    out = perfgate.printed("doctor --scenario h200-serve")
    assert "own environment: warning\n  found: shared with vllm 1\n" in out


def test_a_machine_that_is_fit_and_one_that_is_not(found, perfgate: Perfgate) -> None:
    asked = found(REPORT)
    out = perfgate.printed("doctor --scenario h200-serve")
    assert asked == [("h200-serve", PreflightTarget())]
    assert "gpu persistence  warning  GPU 1: off\nhosts            unknown  checked only" in out
    assert "\n  found: GPU 1: off\n  expected: persistence mode on\n  fix: -pm 1 as root\n" in out
    assert "\nobserved, not judged:\n  driver: 580.65.06\n" in out
    assert out.endswith("fit: 3 checks, 1 to be looked at, 1 unknown\n")
    found(PreflightReport((*REPORT.checks, SICK)))
    out = perfgate.printed("doctor --scenario h200-serve", 1)
    assert out.index("gpu errors: failed") < out.index("gpu persistence: warning")
    assert out.endswith("not fit: 4 checks, 1 failed, 1 to be looked at, 1 unknown\n")
    found(PreflightReport((SICK,), {"swap": "none"}))
    told = perfgate.plain("doctor --scenario h200-serve", 1)
    assert told.pop("machine")
    assert told == {
        "scenario": "h200-serve",
        "fit": False,
        "checks": [asdict(SICK)],
        "observed": {"swap": "none"},
    }


def test_a_selection_of_tests(found, perfgate: Perfgate) -> None:
    asked = found(REPORT)
    out = perfgate.printed(["doctor", "-m", "h200 or local", "--launcher", "slurm"])
    assert out.startswith("h200 or local: 6 tests (2 accuracy, 4 throughput) of 2 scenarios\n")
    slurm = PreflightTarget(by_slurm=True)
    assert asked == [("h200-serve", slurm), ("local-smollm2-serve", slurm)]
    assert "gpu persistence  warning  all        GPU 1: off; expected: persistence mode" in out
    assert (out.count("fix 1: -pm 1 as root"), out.count("fix 2")) == (1, 0)
    assert out.endswith("\ncomplete\n")
    found(PreflightReport((SICK,)))
    told = perfgate.plain("doctor -m h200", 1)
    assert told.pop("machine")
    assert told == {
        "expression": "h200",
        "tests": {"accuracy": 1, "throughput": 2},
        "fit": False,
        "checks": {"h200-serve": [asdict(SICK)]},
    }


def test_a_selection_asks_for_what_its_tests_need(
    monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    monkeypatch.setenv("PERFGATE_PROGRAM_LM_EVAL", "/nowhere/lm_eval")
    checks = perfgate.plain("doctor -m local", 1)["checks"]["local-smollm2-serve"]
    (failed,) = [one for one in checks if one["outcome"] == "failed"]
    assert (failed["name"], "/nowhere/lm_eval" in failed["found"]) == ("evaluators", True)
    checks = perfgate.plain(["doctor", "-m", "local and throughput"])["checks"]
    assert "evaluators" not in [one["name"] for one in checks["local-smollm2-serve"]]


def test_how_the_programs_would_be_started(
    found, suite_root: Path, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    asked = found(REPORT)
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    (suite_root / "site.yaml").write_text("schema_version: 1\ndocker: {image: 'mine:1'}\n")
    for words in ("--launcher docker", "--run-dir x --reach"):
        perfgate.printed(f"doctor --scenario h200-serve {words}")
    assert [where for _, where in asked] == [
        PreflightTarget(runtime="docker"),
        PreflightTarget(run_folder=Path("x"), reach=True),
    ]
    (suite_root / "site.yaml").write_text("schema_version: 1\ndocker: {imgae: x}\n")
    assert "did you mean image?" in perfgate.refused("doctor")


def test_really_without_the_gpu(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_FAKE_GPUS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # on a machine with an H200, too
    assert main(["doctor", "--scenario", "h200-serve", "--format", "json"]) == 1
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["gpus"]["outcome"] == "failed"
    assert checks["date"]["outcome"] == "ok"
