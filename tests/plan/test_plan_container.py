"""Docker, as the DeepSeek-R1 recipe has it."""

from dataclasses import replace
from pathlib import Path, PurePath

import pytest
from building import SCENARIO
from launching import PAPER, launched

from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.plan.container import contained, container_of, entered
from perfgate.scenarios.scenario import Container

BOX = Container("nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc6", "tensorrt_llm")
SERVE = Command(("trtllm-serve", "model"), env={"A": "1", "HF_TOKEN": "hf_1"})
BUILD = EngineBuild("tensorrt-llm", "1.2.0", "1.2.0")


def test_is_spelled_as_documented_but_for_the_terminal() -> None:
    assert contained(SERVE, BOX, PAPER).argv == (
        *("docker", "run", "--rm", "--ipc=host", "--gpus", "all", "-p", "127.0.0.1:8000:8000"),
        *("-v", "~/.cache:/root/.cache:rw", "-v", ".:/workspace", "-w", "/workspace"),
        *("--name", "tensorrt_llm", "-e", "A", "-e", "HF_TOKEN", BOX.image),
        *("trtllm-serve", "model"),
    )


def test_a_run_mounts_this_machines_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("PERFGATE_PROGRAM_DOCKER", "true")
    words = contained(SERVE, BOX, Locations(models=Path("/models")), "127.0.0.1:8123:8123").argv
    mounts = {words[at + 1] for at, word in enumerate(words) if word == "-v"}
    assert mounts == {"/home/ada/.cache:/root/.cache:rw", "/models:/models", ".:/workspace"}
    assert words[words.index("-p") + 1] == "127.0.0.1:8123:8123"


def test_a_result_on_standard_output_is_not_greeted_by_the_entry_point() -> None:
    command = Command(("python", "prepare_dataset.py", "--stdout"), stdout="dataset.txt")
    made = contained(command, BOX, PAPER)
    assert made.argv[-5:] == ("--entrypoint", "python", BOX.image, "prepare_dataset.py", "--stdout")
    assert made.stdout == "dataset.txt"


def test_a_client_enters_the_servers_container_in_a_folder_of_its_own() -> None:
    made = entered(Command(("python", "-m", "bench")), BOX, PAPER, PurePath("results/c32"))
    assert made.argv == (
        *("docker", "exec", "-w", "/workspace/results/c32", "tensorrt_llm"),
        *("python", "-m", "bench"),
    )


def test_the_image_is_that_of_the_build() -> None:
    assert container_of(SCENARIO, BUILD) == replace(BOX, image=BOX.image[:-8] + "1.2.0")
    own = replace(SCENARIO, container=Container("registry/own:7", "mine"))
    assert container_of(own, BUILD) == Container("registry/own:7", "mine")
    documented = replace(SCENARIO, container=BOX)
    assert container_of(documented, BUILD).image.endswith("release:1.2.0")


def test_refuses_engines_without_a_container_and_several_nodes() -> None:
    with pytest.raises(InputError, match=r"no release container of llama\.cpp"):
        container_of(SCENARIO, EngineBuild("llama.cpp", "1", "1"))
    with pytest.raises(InputError, match="PERFGATE_CONTAINER_IMAGE"):
        container_of(launched("srun"), BUILD)
