"""`perfgate release pack` on a real session: told, then written, the same anywhere."""

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import forked
import pytest
import yaml
from checkouts import Suite, copied
from made_packs import files_of
from sessions import untraced

from perfgate.release.pack_archive import open_pack

pytestmark = pytest.mark.slow

POLICY = {
    "schema_version": 1,
    "release": "stand-in 1.0",
    "build": {"engine": "stand-in", "version": "1.0"},
    "required": [{"name": "serving", "tests": ["standin-serve-c1"]}],
}
PACK = ("release", "pack", "release.yaml", "--import", "standin", "--output", "evidence.tar")


def pack(suite: Suite, *options: str) -> tuple[int, str]:
    """The command in the suite's folder, which writes `evidence.tar`: its status and output."""
    return forked.outcome(suite.perfgate(*PACK, "run", *options))


def write_policy(suite: Suite, **changes: object) -> None:
    (suite.folder / "release.yaml").write_text(yaml.safe_dump({**POLICY, **changes}))


@pytest.fixture
def released(one_point: Suite, tmp_path: Path) -> Suite:
    """A suite with a policy and a run."""
    made = copied(one_point, tmp_path / "suite")
    write_policy(made)
    return made


def test_it_is_told_then_written_and_can_be_read(released: Suite, tmp_path: Path) -> None:
    file = released.folder / "evidence.tar"
    status, told = pack(released)
    assert status == 2
    assert "release stand-in 1.0: PASSED, 1 metric checked" in told
    assert "fix: look at the sizes above, and give --yes" in told
    status, told = pack(released, "--yes", "--max-size", "1KiB")
    assert status == 2
    assert "at most 1024 bytes" in told
    assert not file.exists()
    status, told = pack(released, "--yes")
    assert status == 0, told
    packed = open_pack(file)
    assert f"SHA-256 of its manifest {packed.manifest_sha256}" in told
    listed, files = packed.manifest.files, files_of(file)
    assert f"files: {len(listed)}, " in told
    in_run = [path for path in (released.folder / "run").rglob("*") if path.is_file()]
    left_out = [path for path in in_run if path.name == "summary.md" or path.suffix == ".lock"]
    assert f"left out: {len(left_out)} file" in told
    of_run = [one for one in listed if one.path.startswith("runs/run/")]
    assert len(of_run) == len(in_run) - len(left_out)
    assert "PASSED" in files["certificate/certificate.md"].decode().splitlines()[0]
    script = files["reproduce/standin-serve-c1.sh"].decode()
    assert "pytest 'perf_tests/test_serving.py::test_serving[standin-serve-c1]'" in script
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    check = released.perfgate(
        *("release", "check", "policy/release.yaml", "runs/run", "--import", "standin"),
        *("--scenarios", "scenarios/1", "--at", packed.manifest.ended, "--format", "json"),
        folder=tmp_path / "out",
    )
    assert json.loads(check.stdout) == json.loads(files["certificate/check.json"])


def test_two_packs_of_one_input_are_equal(released: Suite, tmp_path: Path) -> None:
    assert pack(released, "--yes")[0] == 0
    other = copied(released, tmp_path / "an other folder")
    (other.folder / "evidence.tar").unlink()
    shutil.move(other.folder / "run", other.folder / "copied-2")
    odd = {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "7"}
    subprocess.run(
        [sys.executable, "-m", "perfgate", *PACK, "copied-2", "--yes"],
        cwd=other.folder,
        env={**untraced(other.environment), **odd},
        umask=0o077,
        check=True,
        timeout=60,
    )
    first, second = (one.folder / "evidence.tar" for one in (released, other))
    assert first.read_bytes() == second.read_bytes()


def test_a_refused_release_is_packed_with_the_reason_but_no_secret(released: Suite) -> None:
    file = released.folder / "evidence.tar"
    write_policy(released, required=[{"name": "all", "tests": ["standin-serve"]}])
    status, told = pack(released, "--yes")
    assert status == 0, told
    assert "FAILED" in told
    assert "none of 2 that no run has" in told
    check = json.loads(files_of(file)["certificate/check.json"])
    assert check["result"] == "FAILED"
    assert {one["finding"] for one in check["tests"]} == {"passed", "missing"}
    file.unlink()
    token = "hf_" + "QwErTy12" * 4 + "Ab"
    (log,) = (released.folder / "run").rglob("start-2*/server.err")
    lines = log.read_text().count("\n") + 1
    log.write_text(f"{log.read_text()}got {token}\n")
    status, told = pack(released, "--yes")
    assert (status, file.exists()) == (2, False)
    assert f"server.err:{lines}: a secret stands here" in told
    assert token not in told
