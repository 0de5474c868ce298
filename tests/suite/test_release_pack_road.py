"""`perfgate release pack` on a real session: told, then written, the same anywhere."""

import json
import shutil
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from checkouts import Suite, run_alone, says
from made_packs import files_of

from perfgate.release.pack_archive import open_pack

pytestmark = pytest.mark.slow

POLICY = {
    "schema_version": 1,
    "release": "stand-in 1.0",
    "build": {"engine": "stand-in", "version": "1.0"},
    "required": [{"name": "serving", "tests": ["standin-serve-c1"]}],
}
PACK = ("release", "pack", "release.yaml", "--import", "standin", "--output", "evidence.tar")


def write_policy(suite: Suite, **changes: object) -> None:
    (suite.folder / "release.yaml").write_text(yaml.safe_dump({**POLICY, **changes}))


@pytest.fixture
def released(one_point: Suite, tmp_path: Path) -> Suite:
    """A suite with a policy and a run."""
    made = one_point.copy(tmp_path / "suite")
    write_policy(made)
    return made


def test_it_is_told_then_written_and_can_be_read(released: Suite, tmp_path: Path) -> None:
    file = released.folder / "evidence.tar"
    status, told = released.perfgate(*PACK, "run")
    says(told, "release stand-in 1.0: PASSED, 1 metric checked", "look at the sizes above")
    assert (status, "and give --yes" in told) == (2, True)
    status, told = released.perfgate(*PACK, "run", "--yes", "--max-size", "1KiB")
    assert (status, "at most 1024 bytes" in told, file.exists()) == (2, True, False), told
    status, told = released.perfgate(*PACK, "run", "--yes")
    assert status == 0, told
    packed, files = open_pack(file), files_of(file)
    listed = packed.manifest.files
    in_run = [path for path in released.run_folder.rglob("*") if path.is_file()]
    left_out = [path for path in in_run if path.name == "summary.md" or path.suffix == ".lock"]
    counts = (f"files: {len(listed)}, ", f"left out: {len(left_out)} file")
    says(told, f"SHA-256 of its manifest {packed.manifest_sha256}", *counts)
    of_run = [one for one in listed if one.path.startswith("runs/run/")]
    assert len(of_run) == len(in_run) - len(left_out)
    assert "PASSED" in files["certificate/certificate.md"].decode().splitlines()[0]
    script = files["reproduce/standin-serve-c1.sh"].decode()
    assert "pytest 'perf_tests/test_serving.py::test_serving[standin-serve-c1]'" in script
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    _, check = released.perfgate(
        *("release", "check", "policy/release.yaml", "runs/run", "--import", "standin"),
        *("--scenarios", "scenarios/1", "--at", packed.manifest.ended, "--format", "json"),
        folder=tmp_path / "out",
    )
    assert json.loads(check) == json.loads(files["certificate/check.json"])


def test_two_packs_of_one_input_are_equal(released: Suite, tmp_path: Path) -> None:
    other = released.copy(tmp_path / "an other folder")
    assert released.perfgate(*PACK, "run", "--yes")[0] == 0
    shutil.move(other.run_folder, other.folder / "copied-2")
    odd = {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "7"}
    call = (sys.executable, "-m", "perfgate", *PACK, "copied-2", "--yes")
    done = run_alone(call, other.folder, other.environment | odd, umask=0o077)
    assert done.returncode == 0, done.stderr
    first, second = (one.folder / "evidence.tar" for one in (released, other))
    assert first.read_bytes() == second.read_bytes()


def test_a_refused_release_is_packed_with_the_reason_but_no_secret(released: Suite) -> None:
    file = released.folder / "evidence.tar"
    write_policy(released, required=[{"name": "all", "tests": ["standin-serve"]}])
    status, told = released.perfgate(*PACK, "run", "--yes")
    says(told, "FAILED", "none of 2 that no run has")
    assert status == 0
    check = json.loads(files_of(file)["certificate/check.json"])
    assert check["result"] == "FAILED"
    assert {one["finding"] for one in check["tests"]} == {"passed", "missing"}
    file.unlink()
    token = "hf_" + "QwErTy12" * 4 + "Ab"
    (log,) = released.run_folder.rglob("start-2*/server.err")
    lines = log.read_text().count("\n") + 1
    log.write_text(f"{log.read_text()}got {token}\n")
    status, told = released.perfgate(*PACK, "run", "--yes")
    says(told, f"server.err:{lines}: a secret stands here")
    assert (status, file.exists(), token in told) == (2, False, False)
