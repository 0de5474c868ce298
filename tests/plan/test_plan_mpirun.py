"""mpirun, as the DeepSeek-V3 example has it."""

from dataclasses import replace

import pytest
from launching import BENCH, PAPER, launched

from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.plan.wrapping import wrapped


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPIRUN", "TRTLLM_LLMAPI_LAUNCH"):
        monkeypatch.setenv(f"PERFGATE_PROGRAM_{name}", "true")


def test_is_spelled_as_documented() -> None:
    scenario = launched("mpirun", output="bench_log", ssh_port=2233)
    assert wrapped(BENCH, scenario, PAPER).argv == (
        *("mpirun", "--output-filename", "bench_log", "-H", "<HOST1>:8,<HOST2>:8"),
        *("-mca", "plm_rsh_args", "-p 2233", "--allow-run-as-root", "-n", "16"),
        *("trtllm-llmapi-launch", "trtllm-bench", "throughput"),
    )


def test_hands_variables_to_the_ranks_of_all_hosts() -> None:
    """Section "DeepGEMM": no ssh port; variables of the command reach other hosts likewise."""
    scenario = launched("mpirun", pass_on={"CUDA_HOME": "/usr/local/cuda"})
    command = replace(BENCH, env={"TRTLLM_DG_ENABLED": "1"})
    made = wrapped(command, scenario, PAPER)
    assert made.argv == (
        *("mpirun", "-H", "<HOST1>:8,<HOST2>:8", "-n", "16"),
        *("-x", "CUDA_HOME", "-x", "TRTLLM_DG_ENABLED"),
        *("trtllm-llmapi-launch", "trtllm-bench", "throughput"),
    )
    assert made.env == {"CUDA_HOME": "/usr/local/cuda", "TRTLLM_DG_ENABLED": "1"}


def test_what_is_injected_wins_over_what_is_documented() -> None:
    scenario = launched("mpirun", pass_on={"TRTLLM_DG_ENABLED": "1"})
    made = wrapped(replace(BENCH, env={"TRTLLM_DG_ENABLED": "0"}), scenario, PAPER)
    assert [word for word in made.argv if "DG_ENABLED" in word] == ["TRTLLM_DG_ENABLED"]
    assert made.env == {"TRTLLM_DG_ENABLED": "0"}


def test_no_value_of_a_variable_is_written() -> None:
    env = {"HF_TOKEN": "v1", "MY_SIGNING": "v2"}
    made = wrapped(replace(BENCH, env=env), launched("mpirun", pass_on={"B": "v3"}), PAPER)
    assert not [word for word in made.argv if "v" in word and word[-1] in "123"]
    assert made.env == {"B": "v3", **env}


def test_a_run_works_as_root_too() -> None:
    argv = wrapped(BENCH, launched("mpirun"), Locations(hosts=("n1", "n2"))).argv
    assert "--allow-run-as-root" in argv
    assert "n1:8,n2:8" in argv


def test_a_run_needs_to_know_its_hosts() -> None:
    with pytest.raises(InputError, match=r"PERFGATE_HOSTS: too few nodes are named") as caught:
        wrapped(BENCH, launched("mpirun"), Locations())
    assert "found: nothing" in str(caught.value)
