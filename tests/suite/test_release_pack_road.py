"""`perfgate release pack` on a real session: told, then written, the same anywhere."""

import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import forked
import pytest
import yaml
from sessions import untraced
from test_road import Suite, make_suite

from perfgate.release.pack_reader import open_pack

pytestmark = pytest.mark.slow

POLICY = {
    "schema_version": 1,
    "release": "stand-in 1.0",
    "build": {"engine": "stand-in", "version": "1.0"},
    "required": [{"name": "serving", "tests": ["standin-serve-c1"]}],
}


PACK = ("release", "pack", "release.yaml", "--import", "standin", "--output", "evidence.tar")


@dataclass
class Released:
    """A suite with a policy and a run."""

    suite: Suite

    def pack(self, *options: str) -> tuple[int, str]:
        """The command in the suite's folder, which writes `evidence.tar`: its status and output."""
        return forked.outcome(self.suite.perfgate(*PACK, "run", *options))

    @property
    def packed(self) -> Path:
        return self.suite.folder / "evidence.tar"

    def policy(self, **changes: object) -> None:
        text = yaml.safe_dump({**POLICY, **changes})
        (self.suite.folder / "release.yaml").write_text(text)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """What `released` copies: a session of one test that passes."""
    made = make_suite(tmp_path_factory.mktemp("released"))
    done = made.run("perf_tests/test_serving.py", "-k", "c1")
    assert done.verdicts == {"c1": "PASS"}, done.output
    return made


@pytest.fixture
def released(measured: Suite, tmp_path: Path) -> Released:
    shutil.copytree(measured.folder, tmp_path / "suite")
    made = Released(Suite(tmp_path / "suite"))
    made.policy()
    return made


def test_it_is_told_then_written_and_can_be_read(released: Released, tmp_path: Path) -> None:
    status, told = released.pack()
    assert status == 2
    assert "release stand-in 1.0: PASSED, 1 metric checked" in told
    assert "fix: look at the sizes above, and give --yes" in told
    assert not released.packed.exists()
    status, told = released.pack("--yes")
    assert status == 0, told
    pack = open_pack(released.packed)
    assert f"SHA-256 of its manifest {pack.manifest_sha256}" in told
    assert f"files: {len(pack.files())}, " in told
    in_run = [path for path in (released.suite.folder / "run").rglob("*") if path.is_file()]
    left_out = [path for path in in_run if path.suffix == ".lock"]
    assert f"left out: {len(left_out)} file" in told
    of_run = [one for one in pack.files() if one.path.startswith("runs/run/")]
    assert len(of_run) == len(in_run) - len(left_out)
    assert "PASSED" in pack.read("certificate/certificate.md").decode().splitlines()[0]
    script = pack.read("reproduce/standin-serve-c1.sh").decode()
    assert "pytest 'perf_tests/test_serving.py::test_serving[standin-serve-c1]'" in script
    with tarfile.open(released.packed) as file:
        file.extractall(tmp_path / "out", filter="data")
        assert file.getnames() == [*pack.entries]
    assert pack.read("manifest.json") == (tmp_path / "out" / "manifest.json").read_bytes()
    check = released.suite.perfgate(
        *("release", "check", "policy/release.yaml", "runs/run", "--import", "standin"),
        *("--scenarios", "scenarios/1", "--at", pack.manifest.ended, "--format", "json"),
        folder=pack.extracted(tmp_path / "extracted"),
    )
    assert json.loads(check.stdout) == json.loads(pack.read("certificate/check.json"))


def test_two_packs_of_one_input_are_equal(released: Released, tmp_path: Path) -> None:
    assert released.pack("--yes")[0] == 0
    elsewhere = tmp_path / "an other folder"
    elsewhere.mkdir()
    for name in ("scenarios", "pyproject.toml", "release.yaml", "conftest.py"):
        source = released.suite.folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, elsewhere / name)
    shutil.copytree(released.suite.folder / "run", elsewhere / "copied-2")
    other = Released(Suite(elsewhere))
    done = subprocess.run(
        [sys.executable, "-m", "perfgate", *PACK, "copied-2", "--yes"],
        cwd=elsewhere,
        env={
            **untraced(other.suite.environment),
            **{"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "7"},
        },
        umask=0o077,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert other.packed.read_bytes() == released.packed.read_bytes()


def test_a_refused_release_is_packed_with_the_reason(released: Released) -> None:
    released.policy(required=[{"name": "all", "tests": ["standin-serve"]}])
    status, told = released.pack("--yes")
    assert status == 0, told
    assert "FAILED" in told
    assert "none of 2 that no run has" in told
    check = json.loads(open_pack(released.packed).read("certificate/check.json"))
    assert check["result"] == "FAILED"
    assert {one["finding"] for one in check["tests"]} == {"passed", "missing"}


def test_a_secret_a_link_or_a_size_keeps_it_from_being_written(released: Released) -> None:
    token = "hf_" + "QwErTy12" * 4 + "Ab"
    (log,) = (released.suite.folder / "run").rglob("start-2*/server.err")
    before = log.read_text()
    log.write_text(f"{before}got {token}\n")
    status, told = released.pack("--yes")
    assert status == 2
    lines = before.count("\n") + 1
    assert f"server.err:{lines}: a secret stands here" in told
    assert token not in told
    log.unlink()
    log.symlink_to("/etc/hostname")
    status, told = released.pack("--yes")
    assert status == 2
    assert f"{log}: not a regular file" in told
    log.unlink()
    log.write_text(before)
    status, told = released.pack("--yes", "--max-size", "1KiB")
    assert status == 2
    assert "at most 1024 bytes" in told
    assert "files: " in told
    assert not released.packed.exists()


def test_a_scenario_that_changed_since_it_was_measured_is_refused(released: Released) -> None:
    released.suite.edit(
        lambda text: text.replace("requests_per_concurrency: 4", "requests_per_concurrency: 5")
    )
    status, told = released.pack("--yes")
    assert status == 21, told
    assert "standin-serve, c1: " in told
    assert not released.packed.exists()
