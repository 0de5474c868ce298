"""The preflight of a node: the scenario file that it reads, and the program that reads it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tables import each

from perfgate.launchers.nodes.preflight import doctor_command, scenario_text
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

SUITE = load_scenarios(Path(__file__).parents[3] / "scenarios")


@each("scenario", SUITE, ids=lambda one: one.id)
def test_it_is_read_there_as_it_is_here_but_for_its_markers(tmp_path, scenario: Scenario) -> None:
    """A marker is declared in another file, which does not go to the node."""
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario_text(replace(scenario, markers=("of_our_own",))))
    assert load_scenarios(file) == (replace(scenario, markers=()),)


def test_values_that_no_script_has_are_not_in_it() -> None:
    (mpi,) = (one for one in SUITE if one.id == "h200-v3-fp8-2node-deepgemm-on")
    secret = {"HF_TOKEN": "s3cr3t", "MY_LICENCE": "s3cr3t too"}
    launch = replace(mpi.launch, pass_on={**mpi.launch.pass_on, **secret})
    text = scenario_text(replace(mpi, environment={**mpi.environment, **secret}, launch=launch))
    assert "s3cr3t" not in text
    assert "TRTLLM_DG_ENABLED" in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the scenario file of eight GPUs, and modules that nobody may import."""
    text = scenario_text(next(one for one in SUITE if one.id == "h200-v3-fp8-2node-slurm"))
    (tmp_path / "scenario.yaml").write_text(text)
    for name in ("json.py", "argparse.py", "perfgate.py"):
        (tmp_path / name).write_text("raise SystemExit('the working folder was imported')\n")
    return tmp_path


def checked(folder: Path, *, contained: bool) -> dict[str, dict[str, str]]:
    """The checks by name, as the program prints them."""
    command = doctor_command(SUITE[0], folder, contained=contained)
    done = subprocess.run(command.argv, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["machine"]["host"]
    assert "swap" in answer["observed"]
    return {one["name"]: one for one in answer["checks"]}


def test_the_program_looks_at_this_machine_and_imports_nothing_of_its_folder(folder: Path) -> None:
    checks = checked(folder, contained=False)
    assert checks["gpus"]["outcome"] == checks["engine"]["outcome"] == "failed"
    assert "slurm" not in checks, "a node does not look for further nodes"
    checks = checked(folder, contained=True)  # programs in a container are unknown
    assert checks["engine"]["outcome"] == checks["clients"]["outcome"] == "unknown"


def test_a_node_without_the_file_says_so(tmp_path: Path) -> None:
    command = doctor_command(SUITE[0], tmp_path / "elsewhere", contained=False)
    done = subprocess.run(command.argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("perfgate: ")
    assert "elsewhere" in done.stderr
    assert "Traceback" not in done.stderr
