"""What CI calls: the steps and their order, in fresh clones; no test is in none of them."""

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tables import each

ROOT = Path(__file__).parents[2]
THROUGH_SLURM = ROOT / "ci" / "maintenance" / "local-through-slurm.sh"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def program(folder: Path, name: str, text: str) -> Path:
    """An executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def environment(folder: Path) -> dict[str, str]:
    """This process's, the programs in `folder` first on PATH; not what a calling make added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "CALLS": str(folder / "calls")}


def call(argv: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it with the programs in `folder`; no exit status is an error."""
    return subprocess.run(
        argv,
        cwd=ROOT,
        env={**environment(folder), **more},
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


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small repository that CI runs in, with something in it that is not committed."""
    folder = tmp_path / "checkout"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder))
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "all")):
        subprocess.run((*git, *words), check=True, timeout=60)
    (folder / "not-committed").touch()
    return folder


# Fails where something was made before, or is there that nobody committed. Of a release alone
# `make local` is made before.
FAKE_MAKE = """
echo "make $*" >> "$CALLS"
if [ -e not-committed ] || [ ! -e .ci/run ]; then exit 9; fi
case $1 in local-release) before=local ;; *) before= ;; esac
[ "$(cat made 2>/dev/null)" = "$before" ] || exit 9
echo "$1" > made
case $1 in
  setup) mkdir -p .venv/bin
         for name in python pytest; do
           printf '#!/bin/sh\necho "%s $*" >> "$CALLS"; ! [ "$BROKEN" = %s ] || exit 2\n' \
             $name $name > .venv/bin/$name
           chmod +x .venv/bin/$name
         done ;;
  test) mkdir .venv; touch .venv/of-the-tests ;;
  root-test) ls .venv >> "$CALLS" ;;
esac
[ "$BROKEN" != "$1" ] || exit 2
"""

LOCAL = "make local, and a release of it"
STEPS = [
    LOCAL,
    "make setup and the documented commands",
    *("make wheel-test", "make test", "make root-test"),
]


class TestRun:
    def run(
        self, tmp_path: Path, checkout: Path, make: str = FAKE_MAKE, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Let CI run with that for `make`, from another folder, and leave nothing behind."""
        program(tmp_path, "make", make)
        clones = tmp_path / "clones"
        clones.mkdir()
        run = [str(checkout / ".ci" / "run")]
        done = call(run, tmp_path, **{"TMPDIR": str(clones), "BROKEN": "", **more})
        assert list(clones.iterdir()) == []
        return done

    def expected(self, checkout: Path) -> list[str]:
        return [
            "make local",
            "make local-release",
            "make setup",
            "python ci/maintenance/documented_lines.py",
            f"pytest -m b200 --collect-only --quiet --engine-repo {checkout}",
            "make wheel-test",
            "make test",
            "make root-test",
            "of-the-tests",
        ]

    def test_no_step_finds_what_another_made_and_each_tells_how_long_it_took(
        self, tmp_path: Path, checkout: Path
    ) -> None:
        done = self.run(tmp_path, checkout)
        assert done.returncode == 0, done.stderr
        assert calls(tmp_path) == self.expected(checkout)
        told = re.findall(r"^== (.*) took ", done.stdout, re.MULTILINE)
        assert told == STEPS
        table = done.stdout.splitlines()[-6:]
        assert table[0] == "== minutes  step"
        assert [line.split("  ")[-1] for line in table[1:]] == STEPS
        assert all(re.match(r" +\d+:\d\d  ", line) for line in table[1:])

    @pytest.mark.parametrize(
        ("broken", "ran", "step"),
        [
            ("local-release", 2, STEPS[0]),
            ("pytest", 5, STEPS[1]),
            ("wheel-test", 6, STEPS[2]),
            ("test", 7, STEPS[3]),
            ("root-test", 9, STEPS[4]),
        ],
    )
    def test_ends_with_the_first_step_that_fails_and_says_which(
        self, tmp_path: Path, checkout: Path, broken: str, ran: int, step: str
    ) -> None:
        done = self.run(tmp_path, checkout, BROKEN=broken)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == f"== FAILED with status 2: {step}"
        assert calls(tmp_path) == self.expected(checkout)[:ran]

    def test_a_step_hears_sigint_whatever_its_caller_ignores(
        self, tmp_path: Path, checkout: Path
    ) -> None:
        make = 'grep SigIgn /proc/self/status >> "$CALLS"; exit 3'
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            assert self.run(tmp_path, checkout, make).returncode == 3
        finally:
            signal.signal(signal.SIGINT, before)
        (line,) = calls(tmp_path)
        assert int(line.split()[1], 16) & (1 << signal.SIGINT - 1) == 0

    def test_no_environment_of_the_caller_is_inherited(
        self, tmp_path: Path, checkout: Path
    ) -> None:
        venv = tmp_path / "venv"
        (venv / "bin").mkdir(parents=True)
        program(venv / "bin", "only-in-venv", "exit 0")
        make = (
            'echo "$VIRTUAL_ENV|$PYTHONPATH|$PERFGATE_HOME|$(command -v only-in-venv)|'
            '$PIP_INDEX_URL" >> "$CALLS"; exit 3'
        )
        done = self.run(
            tmp_path,
            checkout,
            make,
            VIRTUAL_ENV=str(venv),
            PYTHONPATH=str(venv),
            PERFGATE_HOME=str(venv),
            PIP_INDEX_URL="https://example.org/simple",
            PATH=f"{tmp_path}:{venv}/bin:{os.environ['PATH']}",
        )
        assert done.returncode == 3
        assert calls(tmp_path) == ["||||https://example.org/simple"]

    def test_a_signal_ends_the_step_and_leaves_no_clone(
        self, tmp_path: Path, checkout: Path
    ) -> None:
        program(tmp_path, "make", 'echo $$ >> "$CALLS"; sleep 600 & wait')
        clones = tmp_path / "clones"
        clones.mkdir()
        process = subprocess.Popen(
            (checkout / ".ci" / "run",),
            env={**environment(tmp_path), "TMPDIR": str(clones)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not calls(tmp_path) and process.poll() is None:
            time.sleep(0.05)
        (pid,) = map(int, calls(tmp_path))
        process.terminate()
        try:
            _, said = process.communicate(timeout=60)
            with pytest.raises(ProcessLookupError):
                os.killpg(pid, 0)
        finally:
            process.kill()
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        assert process.returncode == 143
        assert f"FAILED with status 143: {LOCAL}\n" in said
        assert list(clones.iterdir()) == []


class TestTargets:
    def test_no_folder_of_tests_is_in_neither(self, tmp_path: Path) -> None:
        run = next(
            line for line in make(tmp_path, "-n", "test").stdout.splitlines() if "--ignore" in line
        )
        left_out = {word.partition("=")[2] for word in run.split() if word.startswith("--ignore")}
        assert "tests" in run.split()
        names = ("slurm", "browser", "pipeline")
        assert left_out == {
            folder for name in names for folder in self.folders_of(tmp_path, f"{name}-test")
        }
        assert self.folders_of(tmp_path, "root-test") == left_out
        for folder in left_out:
            assert any((ROOT / folder).glob("test_*.py")), folder

    @staticmethod
    def folders_of(tmp_path: Path, target: str) -> set[str]:
        """The folders of tests that a target requires to run."""
        lines = make(tmp_path, "-n", target).stdout.splitlines()
        words = next(line for line in lines if " tests/" in line).split()
        found = {word for word in words if word.startswith("tests/")}
        assert found
        return found

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
    @each("first, second, status, runs", [(10, 10, 0, 2), (11, 0, 11, 1), (0, 1, 1, 2)])
    def test_takes_inconclusive_for_an_answer_and_no_other_status(
        self, tmp_path: Path, first: int, second: int, status: int, runs: int
    ) -> None:
        salloc = (
            f'echo salloc >> "$CALLS"; while [ "$1" != {tmp_path}/python ]; do shift; done; "$@"'
        )
        program(tmp_path, "salloc", salloc)
        ends = f'case "$*" in *fresh) exit {first} ;; *) exit {second} ;; esac'
        python = program(tmp_path, "python", f'echo "$@" >> "$CALLS"; {ends}')
        done = call([str(THROUGH_SLURM), str(python)], tmp_path, PERFGATE_NIGHTLY="1")
        assert done.returncode == status, done.stderr
        measure = "-m pytest -m local -k c1 or arithmetic --launcher slurm --self-reference"
        assert (
            calls(tmp_path) == [f"{measure} fresh", "salloc", f"{measure} stored"][: runs * 2 - 1]
        )

    @each("ends, status", [(0, 0), (10, 0), (1, 1)])
    def test_on_each_push_one_point_is_measured_from_the_login_node(
        self, tmp_path: Path, ends: int, status: int
    ) -> None:
        python = program(tmp_path, "python", f'echo "$@" >> "$CALLS"; exit {ends}')
        done = call([str(THROUGH_SLURM), str(python)], tmp_path, PERFGATE_NIGHTLY="")
        assert done.returncode == status, done.stderr
        measure = "-m pytest -m local -k c1 --launcher slurm --self-reference fresh"
        assert calls(tmp_path) == [measure]
