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
    assert wrapped(command, scenario, PAPER).argv == (
        *("mpirun", "-H", "<HOST1>:8,<HOST2>:8", "-n", "16"),
        *("-x", "CUDA_HOME=/usr/local/cuda", "-x", "TRTLLM_DG_ENABLED=1"),
        *("trtllm-llmapi-launch", "trtllm-bench", "throughput"),
    )


def test_what_is_injected_wins_over_what_is_documented() -> None:
    scenario = launched("mpirun", pass_on={"TRTLLM_DG_ENABLED": "1"})
    argv = wrapped(replace(BENCH, env={"TRTLLM_DG_ENABLED": "0"}), scenario, PAPER).argv
    assert [word for word in argv if "DG_ENABLED" in word] == ["TRTLLM_DG_ENABLED=0"]


def test_a_secret_is_named_but_its_value_not_written() -> None:
    argv = wrapped(replace(BENCH, env={"HF_TOKEN": "hf_1"}), launched("mpirun"), PAPER).argv
    assert argv[argv.index("-x") + 1] == "HF_TOKEN"
    assert "hf_1" not in " ".join(argv)


def test_a_run_works_as_root_too() -> None:
    argv = wrapped(BENCH, launched("mpirun"), Locations(hosts=("n1", "n2"))).argv
    assert "--allow-run-as-root" in argv
    assert "n1:8,n2:8" in argv


def test_a_run_needs_to_know_its_hosts() -> None:
    with pytest.raises(InputError, match=r"PERFGATE_HOSTS: too few nodes are named") as caught:
        wrapped(BENCH, launched("mpirun"), Locations())
    assert "found: nothing" in str(caught.value)
