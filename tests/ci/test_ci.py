"""What CI calls: the targets and their order; none is passed over, no test is in none of them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = ["test", "local", "slurm-test"]
THROUGH_SLURM = ROOT / "ci" / "local-through-slurm.sh"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def program(folder: Path, name: str, text: str) -> Path:
    """An executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def call(argv: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it, the programs in `folder` first on PATH; no exit status is an error."""
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        argv,
        cwd=ROOT,
        env={**environment, "PATH": path, "CALLS": str(folder / "calls"), **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The repository's Makefile, which takes the environment for complete."""
    return call(["make", "-o", ".venv/.stamp-dev", *words], folder)


class TestRun:
    def test_makes_every_target_in_order_and_tells_how_long_each_took(self, tmp_path: Path) -> None:
        program(tmp_path, "make", 'echo "$@" >> "$CALLS"')
        done = call([".ci/run"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert calls(tmp_path) == TARGETS
        told = [line for line in done.stdout.splitlines() if " took " in line]
        assert [line.split()[2] for line in told] == TARGETS

    @pytest.mark.parametrize("broken", TARGETS)
    def test_ends_with_the_first_target_that_fails(self, tmp_path: Path, broken: str) -> None:
        program(tmp_path, "make", f'echo "$@" >> "$CALLS"; [ "$1" != {broken} ] || exit 2')
        assert call([".ci/run"], tmp_path).returncode == 2
        assert calls(tmp_path) == TARGETS[: TARGETS.index(broken) + 1]


class TestTargets:
    def test_no_folder_of_tests_is_in_neither(self, tmp_path: Path) -> None:
        run = next(
            line for line in make(tmp_path, "-n", "test").stdout.splitlines() if "--ignore" in line
        )
        left_out = {word.partition("=")[2] for word in run.split() if word.startswith("--ignore")}
        assert "tests" in run.split()
        others = make(tmp_path, "-n", "slurm-test").stdout.splitlines()
        needing = next(line for line in others if "PERFGATE_REQUIRE_SLURM=1" in line).split()
        assert left_out == {word for word in needing if word.startswith("tests/")}
        assert all(any((ROOT / folder).glob("test_*.py")) for folder in left_out)

    def test_a_machine_that_cannot_have_a_slurm_is_told_and_fails(self, tmp_path: Path) -> None:
        cannot = program(
            tmp_path, "cannot", "echo cannot have Slurm here: must run as root >&2; exit 3"
        )
        done = make(tmp_path, "slurm-test", f"SLURM={cannot}")
        assert done.returncode == 2
        assert "cannot have Slurm here: must run as root" in done.stderr
        assert "needs Debian, root" in done.stdout
        assert "tests of the launchers" not in done.stdout


class TestThroughSlurm:
    @pytest.mark.parametrize(
        ("first", "second", "status", "runs"),
        [(0, 0, 0, 2), (10, 10, 0, 2), (11, 0, 11, 1), (0, 1, 1, 2)],
    )
    def test_takes_inconclusive_for_an_answer_and_no_other_status(
        self, tmp_path: Path, first: int, second: int, status: int, runs: int
    ) -> None:
        salloc = (
            f'echo salloc >> "$CALLS"; while [ "$1" != {tmp_path}/python ]; do shift; done; "$@"'
        )
        program(tmp_path, "salloc", salloc)
        ends = f'case "$*" in *fresh) exit {first} ;; *) exit {second} ;; esac'
        python = program(tmp_path, "python", f'echo "$@" >> "$CALLS"; {ends}')
        done = call([str(THROUGH_SLURM), str(python)], tmp_path)
        assert done.returncode == status, done.stderr
        measure = "-m pytest -m local -k c1 or arithmetic --launcher slurm --self-reference"
        assert (
            calls(tmp_path) == [f"{measure} fresh", "salloc", f"{measure} stored"][: runs * 2 - 1]
        )
