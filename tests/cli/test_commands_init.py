"""A gate repository from nothing, in a folder that has files already, where none can be."""

import os
import subprocess
from pathlib import Path

import pytest
from command_line import Perfgate
from tables import each

from perfgate.cli.main import main
from perfgate.core.files.paths import packaged, repository, scenario_folders

Capture = pytest.CaptureFixture[str]

# What the project's owner gives every gate repository.
LAYOUT = {
    *("pyproject.toml", "conftest.py", "site.yaml", "waivers.yaml"),
    *("perf_tests", "baselines", "fixtures", "ci", "scenarios"),
}


@pytest.fixture(autouse=True)
def no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERFGATE_ROOT", "PERFGATE_SCENARIOS", "PERFGATE_BASELINES"):
        monkeypatch.delenv(name, raising=False)


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, perfgate: Perfgate) -> None:
    gate = tmp_path / "deep" / "gate"
    out = perfgate.printed(f"init {gate}")
    assert out.rstrip().endswith(f"next: cd {gate} && perfgate doctor")
    assert {path.name for path in gate.iterdir()} >= LAYOUT
    assert os.access(gate / "ci" / "nightly.sh", os.X_OK)
    monkeypatch.chdir(gate / "perf_tests")
    assert repository() == gate
    assert scenario_folders() == (packaged() / "scenarios",)
    (gate / "scenarios" / "own.yaml").touch()
    assert scenario_folders() == (packaged() / "scenarios", gate / "scenarios")
    tests = {path.name for path in (packaged() / "perf_tests").glob("*.py")}
    assert {path.name for path in (gate / "perf_tests").iterdir()} == tests
    assert list((gate / "baselines").rglob("*.json"))
    for folder in ("documented", "sample"):
        assert not (gate / "baselines" / folder).exists()
    assert not (gate / ".github").exists()


def test_again_it_changes_nothing_and_adds_what_is_missing(
    tmp_path: Path, capsys: Capture, perfgate: Perfgate
) -> None:
    main(["init", str(tmp_path)])
    (tmp_path / "site.yaml").write_text("schema_version: 1\nslurm: {partition: gpu}\n")
    (tmp_path / "perf_tests" / "test_sweep.py").unlink()
    before = files(tmp_path)
    capsys.readouterr()
    told = perfgate.plain(f"init {tmp_path}")["files"]
    assert told.pop("site.yaml") == "differs: left as it is"
    assert told.pop("perf_tests/test_sweep.py") == "written"
    assert set(told.values()) == {"as it was"}
    after = files(tmp_path)
    del after["perf_tests/test_sweep.py"]
    assert after == before


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "waivers.yaml").symlink_to(tmp_path / "elsewhere")
    main(["init", str(tmp_path / "gate")])
    assert not (tmp_path / "elsewhere").exists()


@each(
    "script, mode, status, words",
    [
        ("nightly.sh", "", 10, ["--gate", "--run-dir"]),
        ("nightly.sbatch", "", 10, ["--gate"]),
        ("nightly.sbatch", "gate", 10, ["--gate"]),
        ("nightly.sbatch", "record", 10, ["--record"]),
        ("nightly.sbatch", "auto", 10, ["--gate", "--record"]),
        ("nightly.sbatch", "atuo", 4, []),
    ],
)
def test_what_a_night_calls(
    script: str, mode: str, status: int, words: list[str], tmp_path: Path
) -> None:
    gate, programs = tmp_path / "gate", tmp_path / "bin"
    main(["init", str(gate), "--ci", "slurm"])
    programs.mkdir()
    for name, text in {
        "pytest": 'echo "<$PWD=$PERFGATE_ROOT>"; printf "<%s>" "$@"; exit 10',
        **dict.fromkeys(("squeue", "scontrol"), "exit 0"),
        "perfgate": "exit 10",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    environment |= {"SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(gate)}
    environment |= {"NIGHTLY_MODE": mode} if mode else {}
    done = subprocess.run(
        ["bash", gate / "ci" / script, "b200 and throughput", "-x"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    called = ["-m", "b200 and throughput", *words]
    if script.endswith("sbatch"):
        called[2:2] = ["--launcher", "slurm"]
    begins = f"<{gate}={gate}>\n<{'><'.join(called)}>"
    assert (begins in done.stdout and "<-x>" in done.stdout) == bool(words), done.stdout
    assert ("expected: gate, record or auto" in done.stderr) == (not words)


def test_the_files_of_a_pipeline_are_there_when_they_are_asked_for(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "gate"), "--ci", "github", "--ci", "github"]) == 0
    made = files(tmp_path / "gate")
    for folder in ("workflows", "actions"):
        brought = packaged() / "ci" / "github" / folder
        names = {str(one.relative_to(brought)) for one in brought.rglob("*") if one.is_file()}
        assert names
        assert {f".github/{folder}/{name}" for name in names} <= made.keys()
    pins = made["ci/requirements.txt"]
    assert all(name in pins for name in (b"\npytest==", b"\nlm-eval==", b"--hash=sha256:"))
    assert b"\nhatchling==" in made["ci/build.txt"]
    scripts = (tmp_path / "gate" / ".github/actions/perfgate").glob("*.sh")
    assert all(os.access(one, os.X_OK) for one in scripts)
