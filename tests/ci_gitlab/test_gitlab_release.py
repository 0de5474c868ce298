"""GitLab's release jobs: their scripts run by bash with a `perfgate` that notes calls."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gitlab_executor import CURL, job_script

KEY = "made up at run time"
PERFGATE = """#!/bin/sh
echo "$*" >>CALLS
case "$1 $2" in
  "release check") exit STATUS ;;
  "ci decision") [ "$5" != 0 ] || { echo "pass: fine"; exit 0; }; echo "block: n"; exit "$5" ;;
  "release sign") stat -c "key %a" "$5" >>CALLS; cat "$5" >>CALLS; exit SIGNED ;;
esac
"""
# Makes an environment of links to the stand-ins, and is its `python`, which notes pip's words.
PYTHON = """#!/bin/sh
case "$*" in
  "-m venv "*)
    mkdir -p "$3/bin"
    ln -sf PROGRAMS/python3 "$3/bin/python"
    ln -sf PROGRAMS/perfgate "$3/bin"
    ;;
  "-m pip "*) echo "$0 $*" >>CALLS ;;
  *) exec REAL "$@" ;;
esac
"""
Job = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Runs the scripts, one after the other; status, what was printed, calls of `perfgate`.

    The key is given to the one that signs, as its environment alone has it.
    """
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    archive = shutil.make_archive(str(tmp_path / "artifacts"), "zip", tmp_path, "runs")
    calls, programs, gate = tmp_path / "calls", tmp_path / "bin", tmp_path / "gate"
    for folder in (programs, gate, tmp_path / "tmp"):
        folder.mkdir()

    def run_scripts(
        *, status: int = 0, signed: int = 0, key: str = "", **more: str
    ) -> tuple[int, str, list[str]]:
        texts = {
            "curl": CURL.replace("ZIP", archive),
            "perfgate": PERFGATE.replace("CALLS", str(calls))
            .replace("STATUS", str(status))
            .replace("SIGNED", str(signed)),
            "python3": PYTHON.replace("PROGRAMS", str(programs))
            .replace("CALLS", str(calls))
            .replace("REAL", sys.executable),
        }
        for name, text in texts.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path / "tmp"),
            "GATE_RELEASE": "17",
            "GATE_POLICY": "release.yaml",
            "GATE_PUBLIC_KEY": "",
            "GATE_MODULES": "",
            "GATE_PROGRAMS": str(programs),
            "GATE_REQUIREMENTS": "",
            **dict.fromkeys(("CI_JOB_TOKEN", "CI_API_V4_URL", "CI_PROJECT_ID"), "x"),
            **more,
        }
        printed = ""
        for name, only in (("", {}), ("-sign", {"PERFGATE_RELEASE_KEY": key})):
            done = subprocess.run(
                ("bash", "-c", job_script(f"perfgate-release{name}")),
                cwd=gate,
                env={**environment, **only},
                capture_output=True,
                text=True,
                check=False,
            )
            printed += done.stdout + done.stderr
            if done.returncode:
                break
        said = calls.read_text().splitlines() if calls.exists() else []
        return done.returncode, printed, said

    return run_scripts


def test_what_meets_the_policy_is_packed_signed_and_verified(job: Job, tmp_path: Path) -> None:
    secret = tmp_path / "file-variable"
    secret.write_text(f"{KEY}\n")
    secret.chmod(0o644)
    status, said, calls = job(key=str(secret), GATE_PUBLIC_KEY="release.pub")
    assert status == 0, said
    assert [line.split()[1] for line in calls if line.startswith("release ")] == [
        *("check", "check", "pack", "sign", "verify")
    ]
    run, pack = "perfgate-collected/17/runs/one", "perfgate-release/release.tar"
    assert f"release pack release.yaml {run} --output {pack} --yes" in calls
    assert calls[-1] == f"release verify {pack} --policy release.yaml --key release.pub"
    assert "key 600" in calls
    assert KEY in calls
    assert KEY not in said
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_file_of_requirements_is_installed_instead(job: Job, tmp_path: Path) -> None:
    nowhere = {"GATE_PROGRAMS": str(tmp_path / "nowhere")}
    status, said, calls = job(GATE_REQUIREMENTS="ci/requirements.txt", **nowhere)
    assert status == 0, said
    assert calls[0].startswith(f"{tmp_path}/gate/.perfgate-venv/bin/python -m pip install ")
    assert calls[0].endswith(" --require-hashes -r ci/requirements.txt")
    assert any("release pack" in line for line in calls)


def test_a_signature_that_fails_leaves_no_key(job: Job, tmp_path: Path) -> None:
    secret = tmp_path / "file-variable"
    secret.write_text(f"{KEY}\n")
    status, _, calls = job(signed=27, key=str(secret))
    assert status == 27
    assert not any("release verify" in line for line in calls)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_without_a_key_the_pack_stays_unsigned_and_that_is_said(job: Job) -> None:
    status, said, calls = job()
    assert status == 0
    assert "the pack is not signed" in said
    assert not any("release sign" in line for line in calls)


@pytest.mark.parametrize("refused", [1, 24])
def test_what_does_not_meet_the_policy_is_not_packed(job: Job, refused: int) -> None:
    status, said, calls = job(status=refused)
    assert status == refused
    assert "block:" in said
    assert not any("release pack" in line for line in calls)


@pytest.mark.parametrize("jobs", ["17; touch planted", "-x"])
def test_a_name_that_is_no_jobs_number_is_refused(job: Job, tmp_path: Path, jobs: str) -> None:
    status, said, calls = job(GATE_RELEASE=jobs)
    assert (status, calls) == (2, [])
    assert "not the number of a job" in said
    assert not list(tmp_path.rglob("planted"))
