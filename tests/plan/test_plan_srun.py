"""srun, as the DeepSeek-V3 example has it, and the container that Slurm runs ranks in."""

from dataclasses import replace
from pathlib import Path

import pytest
from launching import BENCH, PAPER, launched

from perfgate.core.locations import Locations
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Container

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc6"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IMAGE", "MOUNTS", "WORKDIR"):
        monkeypatch.delenv(f"PERFGATE_CONTAINER_{name}", raising=False)
    for name in ("SRUN", "TRTLLM_LLMAPI_LAUNCH"):
        monkeypatch.setenv(f"PERFGATE_PROGRAM_{name}", "true")


def test_is_spelled_as_documented() -> None:
    scenario = launched("srun", output="benchmark_2node.log")
    scenario = replace(scenario, container=Container("<CONTAINER_IMG>"))
    assert wrapped(BENCH, scenario, PAPER).argv == (
        *("srun", "-N", "2", "-w", "<HOST1>,<HOST2>", "--output=benchmark_2node.log"),
        *("--ntasks", "16", "--ntasks-per-node=8", "--mpi=pmix", "--gres=gpu:8"),
        *("--container-image=<CONTAINER_IMG>", "--container-mounts=./:/workspace"),
        *("--container-workdir", "/workspace"),
        *("trtllm-llmapi-launch", "trtllm-bench", "throughput"),
    )


def test_a_registry_is_set_apart_as_enroot_needs_it() -> None:
    scenario = replace(launched("srun"), container=Container(IMAGE))
    image = "--container-image=nvcr.io#nvidia/tensorrt-llm/release:1.0.0rc6"
    assert image in wrapped(BENCH, scenario, PAPER).argv


def test_a_run_leaves_the_output_to_the_launcher_and_the_nodes_to_slurm() -> None:
    argv = wrapped(
        BENCH, launched("srun", output="bench.log", time_limit="2:00:00"), Locations()
    ).argv
    assert not [word for word in argv if word == "-w" or word.startswith("--output")]
    assert "--time=2:00:00" in argv
    assert "-w" in wrapped(BENCH, launched("srun"), Locations(hosts=("n1", "n2"))).argv


def test_a_run_is_in_a_container_only_where_the_site_names_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = replace(launched("srun"), container=Container(IMAGE))
    assert "--container" not in " ".join(wrapped(BENCH, scenario, Locations()).argv)
    monkeypatch.setenv("PERFGATE_CONTAINER_IMAGE", "/images/trtllm.sqsh")
    monkeypatch.setenv("PERFGATE_CONTAINER_MOUNTS", "/scratch,/home/ada:/root")
    command = replace(BENCH, env={"TRTLLM_ENABLE_PDL": "1"})
    words = wrapped(command, scenario, Locations(models=Path("/models"))).argv
    assert words[words.index("--gres=gpu:8") + 1 :] == (
        "--container-image=/images/trtllm.sqsh",
        "--container-mounts=/scratch,/home/ada:/root,./:/workspace,/models:/models",
        *("--container-workdir", "/workspace", "--container-env=TRTLLM_ENABLE_PDL"),
        *("trtllm-llmapi-launch", "trtllm-bench", "throughput"),
    )


def test_what_the_site_mounts_is_not_mounted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_CONTAINER_IMAGE", "image")
    monkeypatch.setenv("PERFGATE_CONTAINER_WORKDIR", "/scratch")
    monkeypatch.setenv("PERFGATE_CONTAINER_MOUNTS", "/scratch,/data/models:/models:ro")
    words = wrapped(BENCH, launched("srun"), Locations(models=Path("/models"))).argv
    assert "--container-mounts=/scratch,/data/models:/models:ro" in words
    assert words[words.index("--container-workdir") + 1] == "/scratch"
