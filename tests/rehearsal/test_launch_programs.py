"""Launchers: their stand-ins run the command once, on this machine, and pass its end on."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from playing import Put, Stage
from tables import each

from perfgate.launchers.local.job import LOOK


@pytest.fixture
def stage(put: Put) -> Stage:
    return put()


SAY = ["bash", "-c", "echo said; echo worse >&2; exit 3"]
WRAPPED = {
    "mpirun": (
        "--output-filename bench_log -H one:8,two:8 -mca plm_rsh_args -p2233 --allow-run-as-root "
        "-n 16 -x TRTLLM_DG_ENABLED=1"
    ),
    "srun": (
        "-N2 -w one,two --ntasks 16 --ntasks-per-node=8 --mpi=pmix --gres=gpu:8 "
        "--container-image=image --container-mounts=/w:/w --container-workdir /w"
    ),
    "trtllm-llmapi-launch": "",
}


@each("program", WRAPPED)
def test_the_command_runs_once_and_its_status_is_passed_on(
    stage: Stage, tmp_path: Path, program: str
) -> None:
    wrapper = [stage.program(program), *WRAPPED[program].split()]
    ended = stage.run([*wrapper, *SAY], tmp_path)
    assert (ended.status, ended.out.splitlines()) == (3, ["said"])
    assert "worse" in ended.err
    inside = stage.run([*wrapper, "bash", "-c", "command -v trtllm-bench"], tmp_path)
    assert inside.out.strip() == stage.program("trtllm-bench")


@each("variable", ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"])
def test_of_the_ranks_of_a_real_launcher_only_the_first_runs_the_program(
    stage: Stage, tmp_path: Path, variable: str
) -> None:
    for rank, said in (("0", ["said"]), ("3", [])):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(variable, rank)
            ended = stage.run([stage.program("trtllm-llmapi-launch"), "echo", "said"], tmp_path)
        assert (ended.status, ended.out.splitlines()) == (0, said)


def test_mpirun_hands_variables_on(stage: Stage, tmp_path: Path) -> None:
    argv = [stage.program("mpirun"), "-n", "2", "-x", "A=one", "bash", "-c", "echo $A"]
    assert stage.run(argv, tmp_path).out == "one\n"


def test_mpirun_refuses_an_option_it_does_not_know(stage: Stage, tmp_path: Path) -> None:
    ended = stage.run([stage.program("mpirun"), "--faster", "true"], tmp_path)
    assert ended.status == 1
    assert 'unknown option "--faster"' in ended.err


def test_srun_writes_its_output_where_it_is_told(stage: Stage, tmp_path: Path) -> None:
    argv = [stage.program("srun"), "--output", "log_%j_%t.out", *SAY]
    ended = stage.run(argv, tmp_path)
    assert ended.out == ""
    assert (tmp_path / "log_4711_0.out").read_text() == "said\nworse\n"


def test_sbatch_runs_the_script_to_its_end_when_told_to_wait(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --output=job.out --error=job.err\n\n"
        "exec srun --mpi=pmix bash rank\n"
    )
    (tmp_path / "rank").write_text("echo said; echo worse >&2; exit 3\n")
    ended = stage.run([stage.program("sbatch"), "--wait", "--nodes=2", "job"], tmp_path)
    assert ended.status == 3
    assert ended.out == "Submitted batch job 4711\n"
    assert (tmp_path / "job.out").read_text() == "said\n"
    assert "worse" in (tmp_path / "job.err").read_text()


def test_a_launched_program_that_is_killed(stage: Stage, tmp_path: Path) -> None:
    argv = [stage.program("mpirun"), "-n", "2", "bash", "-c", "kill -9 $$"]
    ended = stage.run(argv, tmp_path)
    assert ended.status == 128 + 9
    assert "exited on signal 9" in ended.err


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("mpirun", ["-H", "n1:2,n2:2", "-n", "4"]),
        ("srun", ["-N", "2", "-w", "n1,n2", "--ntasks", "4", "--ntasks-per-node=2", "--mpi=pmix"]),
        ("srun", ["-N", "2", "--ntasks", "4", "--ntasks-per-node=2"]),
    ],
)
def test_every_rank_says_who_it_is(
    program: str, options: list[str], stage: Stage, tmp_path: Path
) -> None:
    """As before a run on several nodes; the engine itself is run by one of them alone."""
    hello = LOOK.read_text()
    argv = [stage.program(program), *options, sys.executable, "-c", hello, "rank"]
    ended = stage.run(argv, tmp_path)
    assert ended.status == 0, ended.err
    said = [json.loads(line)["perfgate_rank"] for line in ended.out.splitlines()]
    ranks = [one for one in said if "reached" not in one]
    assert sorted(one["rank"] for one in ranks) == [0, 1, 2, 3]
    assert {one["size"] for one in ranks} == {4}
    assert sorted(Counter(one["node"][0] for one in ranks).values()) == [2, 2]


def test_a_rank_that_fails_is_the_launchers_status(stage: Stage, tmp_path: Path) -> None:
    code = "import os; raise SystemExit(3 * (os.environ['OMPI_COMM_WORLD_RANK'] == '2'))"
    argv = [stage.program("mpirun"), "-n", "4", sys.executable, "-c", code]
    assert stage.run(argv, tmp_path).status == 3
