"""The release job's scripts, run by bash with a `perfgate` that notes what it was called with."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "ci/github/actions/perfgate"
KEY = "made up at run time"
PROGRAM = """#!/bin/sh
echo "$*" >>CALLS
[ "$2" = ready ] || [ "$1" = ci ] || printf "%s" "$PLANTED"
case "$1 $2" in
  "release check") exit STATUS ;;
  "ci decision") [ "$5" != 0 ] || { echo "pass: fine"; exit 0; }; echo "block: n"; exit "$5" ;;
  report*) mkdir -p out; echo fine >out/report.md; touch out/annotations.txt ;;
  "baseline ready") printf "%s" "$ENOUGH" ;;
  "baseline promote") exit "$REFUSED" ;;
  "release sign") stat -c "mode %a" "$5" >>CALLS; cat "$5" >>CALLS; exit SIGNED ;;
esac
"""


@pytest.fixture
def job(tmp_path: Path):
    """Runs a script; its status, what it printed, and the calls of `perfgate`."""

    def run(script: str, *, status: int = 0, signed: int = 0, **more: str) -> tuple[int, str, str]:
        calls = tmp_path / "calls"
        calls.write_text("")
        program = tmp_path / "bin" / "perfgate"
        program.parent.mkdir(exist_ok=True)
        text = PROGRAM.replace("CALLS", str(calls)).replace("STATUS", str(status))
        program.write_text(text.replace("SIGNED", str(signed)))
        program.chmod(0o755)
        (tmp_path / "runs" / "b200-1-of-1").mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ("bash", SCRIPTS / script),
            cwd=tmp_path,
            env={
                "PATH": f"{program.parent}:{os.environ['PATH']}",
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
                "RUNNER_TEMP": str(tmp_path),
                "RUNS": "runs",
                "POLICY": "release.yaml",
                "PUBLIC_KEY": "",
                "EVIDENCE": "evidence",
                **more,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr, calls.read_text()

    return run


@pytest.mark.parametrize(
    ("mode", "event", "said"),
    [
        ("atuo", "nightly", "::error::unknown mode: atuo; expected: gate, record or auto"),
        ("auto", "release", "::error::a release is gated: mode auto is for nights"),
    ],
)
def test_a_mode_that_cannot_be_ends_before_anything_is_measured(
    job, mode: str, event: str, said: str
) -> None:
    assert job("matrix.sh", MODE=mode, EVENT=event) == (1, f"{said}\n", "")


@pytest.mark.parametrize(
    ("mode", "measures", "reports"),
    [
        ("gate", "--gate", " --gate"),
        ("record", "--record", ""),
        ("auto", "--gate --record", " --gate"),
    ],
)
def test_what_a_night_does(job, tmp_path: Path, mode: str, measures: str, reports: str) -> None:
    calls = tmp_path / "calls"
    (tmp_path / "bin").mkdir()
    pytest_here = tmp_path / "bin" / "pytest"
    pytest_here.write_text(f'#!/bin/sh\necho "pytest $*" >>{calls}\n')
    pytest_here.chmod(0o755)
    row = {"EXPRESSION": "b200", "SHARD": "1/1", "RUN_DIR": "runs/b200", "EVENT": "nightly"}
    output = {"GITHUB_OUTPUT": str(tmp_path / "output")}
    status, said, calls = job("run.sh", MODE=mode, REHEARSE="false", **row, **output)
    assert (status, calls.splitlines()[0]) == (
        *(0, f"pytest -m b200 --shard 1/1 --run-dir runs/b200 {measures}"),
    ), said
    ended = {"MATRIX": "{}", "MATRIX_RESULT": "success", "ROWS_RESULT": "success"}
    _, said, calls = job("collect.sh", MODE=mode, REHEARSE="false", REPORT="out", **ended, **output)
    report = f"report runs/b200-1-of-1/ --matrix out/matrix.json --to out{reports}"
    assert calls.splitlines()[0] == report, said


@pytest.mark.parametrize(
    ("ready", "enough"), [("", ""), ("one\ntwo\n", "one two"), ("one'; touch planted\n", "")]
)
def test_a_night_that_recorded_enough_says_what_proposes_it(
    job, tmp_path: Path, ready: str, enough: str
) -> None:
    ended = {"MATRIX": "{}", "MATRIX_RESULT": "success", "ROWS_RESULT": "success", "MODE": "auto"}
    given = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_RUN_ID": "77", "ENOUGH": ready}
    status, said, _ = job("collect.sh", REHEARSE="false", REPORT="out", **ended, **given)
    assert status == 0, said
    assert f"enough={enough}\n" in (tmp_path / "output").read_text()
    start = f"gh workflow run baseline_update.yml --field run-id=77 --field scenarios='{enough}'"
    assert (f"`{start}`" in (tmp_path / "summary").read_text()) == bool(enough)
    assert (f"by hand: {start}\n" in said) == bool(enough)
    assert "planted" not in said


@pytest.mark.parametrize(
    ("night", "ends_in", "by"),
    [("true", 0, "the merge of the proposal of run 77"), ("false", 2, "octocat")],
)
def test_a_refusal_fails_who_asked_and_no_night(
    job, tmp_path: Path, night: str, ends_in: int, by: str
) -> None:
    output = tmp_path / "output"
    output.touch()
    run = {"NIGHT": night, "RUN_ID": "77", "ACTOR": "octocat", "REASON": "", "SCENARIOS": "one two"}
    more = {"PROPOSAL": "proposal", "GITHUB_OUTPUT": str(output), "REFUSED": "2"}
    status, said, calls = job("propose.sh", **run, **more)
    assert status == ends_in
    assert output.read_text() == ""
    assert f"--by={by} --scenario=one --scenario=two --patch" in calls
    assert ("::warning::no proposal" in said) == (night == "true")


@pytest.mark.parametrize("script", ["collect.sh", "propose.sh", "release_pack.sh"])
def test_what_perfgate_prints_of_runs_is_no_command(job, tmp_path: Path, script: str) -> None:
    ended = {"MATRIX": "{}", "MATRIX_RESULT": "success", "ROWS_RESULT": "success", "MODE": "gate"}
    more = {"REPORT": "out", "PROPOSAL": "proposal", "GITHUB_OUTPUT": str(tmp_path / "output")}
    run = {"NIGHT": "false", "RUN_ID": "77", "ACTOR": "ada", "REASON": "", "SCENARIOS": "one"}
    more |= {"REHEARSE": "false", "REFUSED": "2", "PLANTED": "::error::planted"}
    _, said, _ = job(script, **ended, **run, **more)
    heeded, token = [], ""
    for line in said.splitlines():
        if line.startswith("::stop-commands::"):
            token = line.rpartition("::")[2]
        elif token and line == f"::{token}::":
            token = ""
        elif not token:
            heeded.append(line)
    assert "::error::planted" in said
    assert not any("planted" in line for line in heeded)


def test_what_meets_the_policy_is_packed(job) -> None:
    status, _, calls = job("release_pack.sh")
    assert status == 0
    pack = "release pack release.yaml runs/b200-1-of-1/ --output evidence/release.tar --yes"
    assert calls.splitlines()[-1] == pack


@pytest.mark.parametrize("refused", [1, 24])
def test_what_does_not_meet_it_is_not_packed(job, refused: int) -> None:
    status, said, calls = job("release_pack.sh", status=refused)
    assert status == refused
    assert "::error::block" in said
    assert "release pack" not in calls


@pytest.mark.parametrize("signed", [0, 27])
def test_the_key_is_there_for_its_owner_alone_and_for_that_step(
    job, tmp_path: Path, signed: int
) -> None:
    status, said, calls = job("release_sign.sh", signed=signed, SIGNING_KEY=KEY)
    assert status == signed
    assert "mode 600" in calls
    assert KEY in calls
    assert KEY not in said
    assert not (tmp_path / "perfgate-release-key").exists()
    verified = "release verify evidence/release.tar --policy release.yaml" in calls
    assert verified == (signed == 0)


def test_without_a_key_the_pack_stays_unsigned_and_that_is_said(job, tmp_path: Path) -> None:
    status, said, calls = job("release_sign.sh", SIGNING_KEY="")
    assert (status, calls) == (0, "")
    assert "the pack is not signed" in said
    assert "**not signed**" in (tmp_path / "summary").read_text()
