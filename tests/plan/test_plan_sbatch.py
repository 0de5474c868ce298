"""sbatch, as the DeepSeek-V3 example has it for a GB200 cluster."""

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import BENCH, PAPER, launched

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Hardware

SCENARIO = replace(launched("sbatch", time_limit="02:00:00"), hardware=Hardware("GB200", 8, 2))


def program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def test_is_spelled_as_documented() -> None:
    made = wrapped(BENCH, SCENARIO, PAPER)
    sizes = ("--nodes=2", "--ntasks=8", "--ntasks-per-node=4")
    assert made.argv == ("sbatch", "--wait", *sizes, "benchmark.slurm")
    assert made.files["benchmark.slurm"] == (
        "#!/bin/bash\n"
        "#SBATCH --nodes=2\n"
        "#SBATCH --ntasks=8\n"
        "#SBATCH --ntasks-per-node=4\n"
        "#SBATCH --time=02:00:00\n"
        "#SBATCH --job-name=small-serve\n"
        "#SBATCH --no-requeue\n"
        "\n"
        "exec srun \\\n  --mpi=pmix \\\n  --output bench_%j_%t.srun.out bash benchmark.sh\n"
    )


def test_a_run_has_everything_in_the_logs_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SBATCH", "SCANCEL", "TRTLLM_LLMAPI_LAUNCH"):
        monkeypatch.setenv(f"PERFGATE_PROGRAM_{name}", "true")
    monkeypatch.delenv("PERFGATE_CONTAINER_IMAGE", raising=False)
    job = wrapped(BENCH, SCENARIO, Locations()).files["benchmark.slurm"]
    assert "#SBATCH --output=benchmark.out\n#SBATCH --error=benchmark.err\n" in job
    assert "bench_%j" not in job


def test_a_run_that_is_ended_ends_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An sbatch that waits and is ended leaves its job running."""
    program(tmp_path, "sbatch", 'echo "17;cluster"; echo "$@" > asked; exec sleep 60')
    program(tmp_path, "scancel", 'echo "$@" > cancelled')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_LLMAPI_LAUNCH", "true")
    for name in ("SBATCH", "SCANCEL"):
        monkeypatch.delenv(f"PERFGATE_PROGRAM_{name}", raising=False)
    made = wrapped(BENCH, SCENARIO, Locations())
    for name, content in made.files.items():
        (tmp_path / name).write_text(content)
    with subprocess.Popen(made.argv, cwd=tmp_path, start_new_session=True) as running:
        while not (tmp_path / "asked").exists():
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGTERM)
        assert running.wait(10) == 143
    assert (tmp_path / "cancelled").read_text() == "17\n"
    asked = (tmp_path / "asked").read_text().split()
    assert {"--wait", "--parsable", "--nodes=2", "benchmark.slurm"} <= set(asked)


@pytest.mark.parametrize("status", [0, 7])
def test_the_status_of_the_job_is_that_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    program(tmp_path, "sbatch", f"echo 17\nexit {status}")
    monkeypatch.setenv("PERFGATE_PROGRAM_SBATCH", str(tmp_path / "sbatch"))
    monkeypatch.setenv("PERFGATE_PROGRAM_SCANCEL", "true")
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_LLMAPI_LAUNCH", "true")
    made = wrapped(BENCH, SCENARIO, Locations())
    (tmp_path / "submit.sh").write_text(made.files["submit.sh"])
    assert subprocess.run(made.argv, cwd=tmp_path, check=False).returncode == status


def test_only_harmless_values_are_written_into_a_script() -> None:
    env = {"HF_TOKEN": "hf_1", "MY_SIGNING": "k3y", "TRTLLM_ENABLE_PDL": "1"}
    made = wrapped(replace(BENCH, env=env), SCENARIO, PAPER)
    assert "hf_1" not in "".join(made.files.values())
    assert "k3y" not in "".join(made.files.values())
    assert "export TRTLLM_ENABLE_PDL=1\n" in made.files["benchmark.sh"]
    assert made.env == env


def test_a_program_that_prints_its_result_is_no_job() -> None:
    with pytest.raises(ValueError, match="prints its result"):
        wrapped(replace(BENCH, stdout="dataset.txt"), SCENARIO, PAPER)


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(arguments=st.lists(WORDS, max_size=5), value=WORDS)
@settings(max_examples=40)
def test_a_rank_gets_the_very_arguments_and_variables(
    tmp_path_factory: pytest.TempPathFactory, arguments: list[str], value: str
) -> None:
    folder = tmp_path_factory.mktemp("rank")
    program(folder, "trtllm-llmapi-launch", 'printf "%s\\0" "$MY_VALUE" "$@"')
    command = Command(("trtllm-bench", *arguments), env={"MY_VALUE": value})
    script = folder / "benchmark.sh"
    script.write_bytes(wrapped(command, SCENARIO, PAPER).files["benchmark.sh"].encode())
    # sbatch hands its environment on, which has the command's variables.
    env = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "MY_VALUE": value}
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [value, "trtllm-bench", *arguments]


def test_the_status_of_the_ranks_is_that_of_the_job(tmp_path: Path) -> None:
    for name, content in wrapped(BENCH, SCENARIO, PAPER).files.items():
        (tmp_path / name).write_text(content)
    program(tmp_path, "srun", 'while [ "$1" != bash ]; do shift; done; exec "$@"')
    program(tmp_path, "trtllm-llmapi-launch", "exit 42")
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "benchmark.slurm"], cwd=tmp_path, env=env, check=False)
    assert done.returncode == 42
