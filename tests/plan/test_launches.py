"""An engine's command as it is launched: by mpirun, srun and sbatch, or in a container.

As the DeepSeek-V3 example and the DeepSeek-R1 recipe have it.
"""

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest
from building import SCENARIO
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.plan.container import contained, container_of, entered
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Container, Hardware, Launch, Scenario

BENCH = Command(("trtllm-bench", "throughput"), files={"config.yml": "a: 1\n"})
SERVE = Command(("trtllm-serve", "model"), env={"A": "1", "HF_TOKEN": "hf_1"})
BUILD = EngineBuild("tensorrt-llm", "1.2.0", "1.2.0")
BOX = Container("nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc6", "tensorrt_llm")
PAPER, HERE = Locations(on_paper=True), Locations()
RANKS = ("trtllm-llmapi-launch", "trtllm-bench", "throughput")
WAYS = ("mpirun", "srun", "sbatch")


def launched(by: Any, **fields: Any) -> Scenario:
    """Two nodes of eight H200."""
    return replace(SCENARIO, hardware=Hardware("H200", 16, 2), launch=Launch(by, **fields))


JOB = replace(launched("sbatch", time_limit="02:00:00"), hardware=Hardware("GB200", 8, 2))


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs are here, and the site has no container."""
    for name in ("IMAGE", "MOUNTS", "WORKDIR"):
        monkeypatch.delenv(f"PERFGATE_CONTAINER_{name}", raising=False)
    for name in ("MPIRUN", "SRUN", "SBATCH", "SCANCEL", "DOCKER", "TRTLLM_LLMAPI_LAUNCH"):
        monkeypatch.setenv(f"PERFGATE_PROGRAM_{name}", "true")


def argv(scenario: Scenario, locations: Locations = PAPER, **changes: Any) -> tuple[str, ...]:
    return wrapped(replace(BENCH, **changes), scenario, locations).argv


def test_without_a_launch_it_is_the_same_command() -> None:
    assert wrapped(BENCH, SCENARIO, PAPER) is BENCH


@each("by", WAYS)
@each("hardware", [Hardware("H200", 15, 2), Hardware("none", 0, 2)])
def test_gpus_that_do_not_spread_evenly_are_refused(by: str, hardware: Hardware) -> None:
    with pytest.raises(InputError, match="GPUs cannot be divided evenly"):
        argv(replace(launched(by), hardware=hardware))


@each("by", WAYS[:2])
def test_as_many_hosts_are_taken_as_there_are_nodes(by: str) -> None:
    words = " ".join(argv(launched(by), replace(PAPER, hosts=("n1", "n2", "n3"))))
    assert [one in words for one in ("n1", "n2", "n3")] == [True, True, False]
    with pytest.raises(InputError, match="set PERFGATE_HOSTS to the nodes"):
        argv(launched(by), replace(PAPER, hosts=("n1",)))


class TestMpirun:
    def test_is_spelled_as_documented(self) -> None:
        assert argv(launched("mpirun", output="bench_log", ssh_port=2233)) == (
            *("mpirun", "--output-filename", "bench_log", "-H", "<HOST1>:8,<HOST2>:8"),
            *("-mca", "plm_rsh_args", "-p 2233", "--allow-run-as-root", "-n", "16", *RANKS),
        )

    def test_hands_variables_on_by_name_and_what_is_injected_wins(self) -> None:
        """Section "DeepGEMM": no ssh port; variables of the command reach other hosts likewise."""
        scenario = launched("mpirun", pass_on={"CUDA_HOME": "v1", "TRTLLM_DG_ENABLED": "v2"})
        made = wrapped(replace(BENCH, env={"TRTLLM_DG_ENABLED": "v3"}), scenario, PAPER)
        assert made.argv == (
            *("mpirun", "-H", "<HOST1>:8,<HOST2>:8", "-n", "16"),
            *("-x", "CUDA_HOME", "-x", "TRTLLM_DG_ENABLED", *RANKS),
        )
        assert made.env == {"CUDA_HOME": "v1", "TRTLLM_DG_ENABLED": "v3"}

    def test_of_a_run_works_as_root_too_and_knows_its_hosts(self) -> None:
        words = argv(launched("mpirun"), Locations(hosts=("n1", "n2")))
        assert {"--allow-run-as-root", "n1:8,n2:8"} <= {*words}
        with pytest.raises(InputError, match=r"PERFGATE_HOSTS: too few nodes are named") as caught:
            argv(launched("mpirun"), HERE)
        assert "found: nothing" in str(caught.value)


class TestSrun:
    def test_is_spelled_as_documented(self) -> None:
        scenario = launched("srun", output="benchmark_2node.log")
        assert argv(replace(scenario, container=Container("<CONTAINER_IMG>"))) == (
            *("srun", "-N", "2", "-w", "<HOST1>,<HOST2>", "--output=benchmark_2node.log"),
            *("--ntasks", "16", "--ntasks-per-node=8", "--mpi=pmix", "--gres=gpu:8"),
            *("--container-image=<CONTAINER_IMG>", "--container-mounts=./:/workspace"),
            *("--container-workdir", "/workspace", *RANKS),
        )

    def test_sets_a_registry_apart_as_enroot_needs_it(self) -> None:
        image = "--container-image=nvcr.io#nvidia/tensorrt-llm/release:1.0.0rc6"
        assert image in argv(replace(launched("srun"), container=BOX))

    def test_of_a_run_leaves_the_output_to_the_launcher_and_the_nodes_to_slurm(self) -> None:
        words = argv(launched("srun", output="bench.log", time_limit="2:00:00"), HERE)
        assert not [word for word in words if word == "-w" or word.startswith("--output")]
        assert "--time=2:00:00" in words
        assert "-w" in argv(launched("srun"), Locations(hosts=("n1", "n2")))

    def test_of_a_run_is_in_a_container_only_where_the_site_names_one(self, monkeypatch):
        scenario, models = replace(launched("srun"), container=BOX), Locations(models=Path("/m"))
        assert "--container" not in " ".join(argv(scenario, models))
        monkeypatch.setenv("PERFGATE_CONTAINER_IMAGE", "/images/trtllm.sqsh")
        monkeypatch.setenv("PERFGATE_CONTAINER_MOUNTS", "/scratch,/home/ada:/root")
        words = argv(scenario, models, env={"TRTLLM_ENABLE_PDL": "1"})
        assert words[words.index("--gres=gpu:8") + 1 :] == (
            "--container-image=/images/trtllm.sqsh",
            "--container-mounts=/scratch,/home/ada:/root,./:/workspace,/m:/m",
            *("--container-workdir", "/workspace", "--container-env=TRTLLM_ENABLE_PDL", *RANKS),
        )
        # What the site mounts is not mounted twice.
        monkeypatch.setenv("PERFGATE_CONTAINER_WORKDIR", "/scratch")
        monkeypatch.setenv("PERFGATE_CONTAINER_MOUNTS", "/scratch,/data/models:/m:ro")
        words = argv(scenario, models)
        assert "--container-mounts=/scratch,/data/models:/m:ro" in words
        assert words[words.index("--container-workdir") + 1] == "/scratch"


class TestDocker:
    def test_is_spelled_as_documented_but_for_the_terminal(self) -> None:
        assert contained(SERVE, BOX, PAPER).argv == (
            *("docker", "run", "--rm", "--ipc=host", "--gpus", "all", "-p", "127.0.0.1:8000:8000"),
            *("-v", "~/.cache:/root/.cache:rw", "-v", ".:/workspace", "-w", "/workspace"),
            *("--name", "tensorrt_llm", "-e", "A", "-e", "HF_TOKEN", BOX.image),
            *("trtllm-serve", "model"),
        )

    def test_mounts_this_machines_folders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/ada")
        words = contained(SERVE, BOX, Locations(models=Path("/m")), "127.0.0.1:8123:8123").argv
        mounts = {words[at + 1] for at, word in enumerate(words) if word == "-v"}
        assert mounts == {"/home/ada/.cache:/root/.cache:rw", "/m:/m", ".:/workspace"}
        assert words[words.index("-p") + 1] == "127.0.0.1:8123:8123"

    def test_a_result_on_standard_output_is_not_greeted_by_the_entry_point(self) -> None:
        made = contained(Command(("python", "prepare.py"), stdout="dataset.txt"), BOX, PAPER)
        assert made.argv[-4:] == ("--entrypoint", "python", BOX.image, "prepare.py")
        assert made.stdout == "dataset.txt"

    def test_a_client_enters_the_servers_container_in_a_folder_of_its_own(self) -> None:
        made = entered(Command(("python", "-m", "bench")), BOX, PAPER, PurePath("results/c32"))
        assert made.argv == (
            *("docker", "exec", "-w", "/workspace/results/c32", "tensorrt_llm"),
            *("python", "-m", "bench"),
        )

    def test_has_the_image_of_the_build(self) -> None:
        released, own = replace(BOX, image=BOX.image[:-8] + "1.2.0"), Container("own:7", "mine")
        for documented, expected in ((None, released), (BOX, released), (own, own)):
            assert container_of(replace(SCENARIO, container=documented), BUILD) == expected
        with pytest.raises(InputError, match=r"no release container of llama\.cpp"):
            container_of(SCENARIO, EngineBuild("llama.cpp", "1", "1"))
        with pytest.raises(InputError, match="PERFGATE_CONTAINER_IMAGE"):
            container_of(launched("srun"), BUILD)


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def program(folder: Path, name: str, body: str) -> dict[str, str]:
    """A program in the folder, and the environment that finds it first."""
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def written(folder: Path, command: Command) -> Command:
    for name, content in command.files.items():
        (folder / name).write_bytes(content.encode())
    return command


class TestSbatch:
    def test_is_spelled_as_documented(self) -> None:
        made = wrapped(BENCH, JOB, PAPER)
        assert made.files["config.yml"] == "a: 1\n"
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

    def test_of_a_run_has_everything_in_the_logs_of_its_step(self) -> None:
        job = wrapped(BENCH, JOB, HERE).files["benchmark.slurm"]
        assert "#SBATCH --output=benchmark.out\n#SBATCH --error=benchmark.err\n" in job
        assert "bench_%j" not in job

    def test_that_is_ended_ends_its_job(self, tmp_path, monkeypatch):
        """An sbatch that waits and is ended leaves its job running."""
        for name in ("SBATCH", "SCANCEL"):
            monkeypatch.delenv(f"PERFGATE_PROGRAM_{name}")
        program(tmp_path, "sbatch", 'echo "17;cluster"; echo "$@" > asked; exec sleep 60')
        path = program(tmp_path, "scancel", 'echo "$@" > cancelled')["PATH"]
        monkeypatch.setenv("PATH", path)
        made = written(tmp_path, wrapped(BENCH, JOB, HERE))
        with subprocess.Popen(made.argv, cwd=tmp_path, start_new_session=True) as running:
            while not (tmp_path / "asked").exists():
                time.sleep(0.05)
            os.killpg(running.pid, signal.SIGTERM)
            assert running.wait(10) == 143
        assert (tmp_path / "cancelled").read_text() == "17\n"
        asked = (tmp_path / "asked").read_text().split()
        assert {"--wait", "--parsable", "--nodes=2", "benchmark.slurm"} <= set(asked)

    @pytest.mark.parametrize("status", [0, 7])
    def test_of_a_run_has_the_status_of_the_job(self, tmp_path, monkeypatch, status):
        program(tmp_path, "sbatch", f"echo 17\nexit {status}")
        monkeypatch.setenv("PERFGATE_PROGRAM_SBATCH", str(tmp_path / "sbatch"))
        made = written(tmp_path, wrapped(BENCH, JOB, HERE))
        assert subprocess.run(made.argv, cwd=tmp_path, check=False).returncode == status

    def test_only_harmless_values_are_written_into_a_script(self) -> None:
        env = {"HF_TOKEN": "hf_1", "MY_SIGNING": "k3y", "TRTLLM_ENABLE_PDL": "1"}
        made = wrapped(replace(BENCH, env=env), JOB, PAPER)
        assert not [one for one in made.files.values() if "hf_1" in one or "k3y" in one]
        assert "export TRTLLM_ENABLE_PDL=1\n" in made.files["benchmark.sh"]
        assert made.env == env

    def test_a_program_that_prints_its_result_is_no_job(self) -> None:
        with pytest.raises(ValueError, match="prints its result"):
            argv(JOB, stdout="dataset.txt")

    @given(arguments=st.lists(WORDS, max_size=5), value=WORDS)
    @example(arguments=["~/mine", "~"], value="~/mine")
    @settings(max_examples=40)
    def test_a_rank_gets_the_very_arguments_and_variables(self, tmp_path_factory, arguments, value):
        folder = tmp_path_factory.mktemp("rank")
        env = program(folder, "trtllm-llmapi-launch", 'printf "%s\\0" "$MY_VALUE" "$@"')
        command = Command(("trtllm-bench", *arguments), env={"MY_VALUE": value})
        written(folder, wrapped(command, JOB, PAPER))
        # sbatch hands its environment on, which has the command's variables.
        call = ["bash", str(folder / "benchmark.sh")]
        done = subprocess.run(call, env={**env, **command.env}, capture_output=True, check=True)
        assert done.stdout.decode().split("\0")[:-1] == [value, "trtllm-bench", *arguments]

    def test_the_status_of_the_ranks_is_that_of_the_job(self, tmp_path: Path) -> None:
        written(tmp_path, wrapped(BENCH, JOB, PAPER))
        program(tmp_path, "srun", 'while [ "$1" != bash ]; do shift; done; exec "$@"')
        env = program(tmp_path, "trtllm-llmapi-launch", "exit 42")
        done = subprocess.run(["bash", "benchmark.slurm"], cwd=tmp_path, env=env, check=False)
        assert done.returncode == 42
