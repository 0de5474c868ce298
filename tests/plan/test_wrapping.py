"""What holds however a command is launched."""

from dataclasses import replace

import pytest
from building import SCENARIO
from launching import BENCH, PAPER, launched
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Hardware

WAYS = ("mpirun", "srun", "sbatch")


def test_without_a_launch_it_is_the_same_command() -> None:
    assert wrapped(BENCH, SCENARIO, PAPER) is BENCH


@each("by", WAYS)
def test_every_rank_runs_the_engine_under_its_launcher_with_its_files(by: str) -> None:
    command = replace(BENCH, env={"TRTLLM_ENABLE_PDL": "1"})
    made = wrapped(command, launched(by), PAPER)
    everything = " ".join([*made.argv, *made.files.values()])
    assert "trtllm-llmapi-launch trtllm-bench" in everything.replace("\\\n ", "").replace("  ", " ")
    assert made.files["config.yml"] == "a: 1\n"
    assert made.env == command.env


@each("by", WAYS)
@each("hardware", [Hardware("H200", 15, 2), Hardware("none", 0, 2)])
def test_refuses_gpus_that_do_not_spread_evenly(by: str, hardware: Hardware) -> None:
    with pytest.raises(InputError, match="GPUs cannot be divided evenly"):
        wrapped(BENCH, replace(launched(by), hardware=hardware), PAPER)


@pytest.mark.parametrize("by", ["mpirun", "srun"])
def test_takes_as_many_hosts_as_there_are_nodes(by: str) -> None:
    three = Locations(on_paper=True, hosts=("n1", "n2", "n3"))
    words = " ".join(wrapped(BENCH, launched(by), three).argv)
    assert "n1" in words
    assert "n2" in words
    assert "n3" not in words
    with pytest.raises(InputError, match="set PERFGATE_HOSTS to the nodes"):
        wrapped(BENCH, launched(by), Locations(on_paper=True, hosts=("n1",)))
