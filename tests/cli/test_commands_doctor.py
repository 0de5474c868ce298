"""`perfgate doctor` where the programs and GPUs of this machine are looked at for real."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from building import MACHINE
from command_line import Perfgate

from perfgate.cli.main import main
from perfgate.core.files.paths import PACKAGED, scenario_folders
from perfgate.machine.preflight.software import judge_software
from perfgate.scenarios.files import LoadedSuite, load_suite

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def everything_but_gpus(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without GPUs; every program there; no variables of whoever runs the tests."""
    monkeypatch.setattr("perfgate.cli.doctor.detect", lambda: MACHINE)
    monkeypatch.setattr("perfgate.cli.doctor.judge_software", lambda tools: ())
    monkeypatch.setattr("perfgate.cli.doctor.variables_set", lambda environment: {})


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


def test_a_selection_asks_for_what_its_tests_need(
    monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    monkeypatch.setenv("PERFGATE_PROGRAM_LM_EVAL", "/nowhere/lm_eval")
    checks = perfgate.plain("doctor -m local", 1)["checks"]["local-smollm2-serve"]
    (failed,) = [one for one in checks if one["outcome"] == "failed"]
    assert (failed["name"], "/nowhere/lm_eval" in failed["found"]) == ("evaluators", True)
    checks = perfgate.plain(["doctor", "-m", "local and throughput"])["checks"]
    assert "evaluators" not in [one["name"] for one in checks["local-smollm2-serve"]]


OPTIONS = (
    *("--max-num-seqs N", "--max-model-len N", "--disable-prefix-caching"),
    *("--host HOST", "--port PORT", "--enforce-eager"),
)


def vllm(folder: Path, options: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A vLLM 0.33 whose help lists these options, and the scenario that it is asked for."""
    (folder / "help").write_text("".join(f"  {option}\n" for option in options))
    program = folder / "vllm"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) echo 0.33.0;; *) cat {folder}/help;; esac\n'
    )
    program.chmod(0o755)
    for name in ("VLLM", "VLLM_SERVE"):
        monkeypatch.setenv(f"PERFGATE_PROGRAM_{name}", str(program))
    monkeypatch.delenv("PERFGATE_ROOT")
    suite = replace(documented("local-smollm2-vllm-bench"), claims=())
    monkeypatch.setattr("perfgate.cli.doctor.load", lambda folders: suite)


@pytest.mark.parametrize(
    ("options", "status", "outcome", "found"),
    [
        (OPTIONS, 0, "ok", ""),
        ((*OPTIONS[:-1], "--enforce-eager  [DEPRECATED] No graphs."), 0, "warning", "deprecated"),
        (OPTIONS[:-1], 1, "failed", "the installed vllm serve has no option --enforce-eager"),
    ],
)
def test_an_installed_build_is_asked_for_its_options_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate,
    options: Sequence[str], status: int, outcome: str, found: str,
) -> None:  # fmt: skip
    vllm(tmp_path, options, monkeypatch)
    words = ["doctor", "--engine", "vllm", "-m", "opt_in"]
    checks = perfgate.plain(words, status)["checks"]["local-smollm2-vllm-bench"]
    assert [(one["name"], one["outcome"]) for one in checks] == [
        ("engine", "ok"),
        ("options", outcome),
    ]
    assert found in checks[1]["found"]
    assert ("fix 1: " in perfgate.printed(words, status)) == (outcome == "failed")


def test_an_engine_that_is_not_installed_is_never_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    vllm(tmp_path, OPTIONS, monkeypatch)
    monkeypatch.delenv("PERFGATE_PROGRAM_VLLM_SERVE")
    out = perfgate.printed("doctor --engine vllm -m opt_in", 1)
    assert "vLLM is not installed" in out
    assert "name it in PERFGATE_PROGRAM_VLLM_SERVE" in out
    assert "unknown engine" in perfgate.refused("doctor --engine vlm")


def test_really_without_the_gpu(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_FAKE_GPUS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # on a machine with an H200, too
    assert main(["doctor", "--scenario", "h200-serve", "--format", "json"]) == 1
    checks = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["gpus"]["outcome"] == "failed"
    assert checks["date"]["outcome"] == "ok"


def test_no_character_of_a_variable_is_hidden(
    monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate
) -> None:
    values = {"PERFGATE_HOME": "/a\x1b[2K/b"}
    monkeypatch.setattr("perfgate.cli.doctor.variables_set", lambda environment: values)
    assert "\nPERFGATE_HOME=/a\\x1b[2K/b\n" in perfgate.printed("doctor")
