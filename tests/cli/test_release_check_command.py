"""`perfgate release check`: its three formats, its statuses, and a release of 500 tests."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import made_runs
import pytest
import yaml
from command_line import Perfgate
from tables import each

from perfgate.cli.main import main
from perfgate.core.verdict import Verdict
from perfgate.release.release_status import ReleaseStatus

ROOT = Path(__file__).parents[2]
PASSED = {"small-c1": Verdict.PASS, "small-c4": Verdict.PASS}
SUMS = "small-perfgate_arithmetic"
POLICY = {
    "schema_version": 1,
    "release": "small 1.3.0",
    "build": {"engine": "llama.cpp", "version": "1.3.0"},
    "required": [{"name": "speed", "tests": [*PASSED]}],
}
OTHER = {"engine": "llama.cpp", "version": "2"}
UNKNOWN = [{"name": "a", "tests": ["x"]}]


@pytest.fixture
def scenarios(suite_root: Path) -> Path:
    """The folder of scenarios of a checkout with the local one, called `small`."""
    folder = suite_root / "scenarios"
    text = (ROOT / "scenarios" / "local" / "smollm2.yaml").read_text()
    (folder / "small.yaml").write_text(text.replace("id: local-smollm2-serve", "id: small"))
    (folder / "markers.yaml").write_text((ROOT / "scenarios" / "markers.yaml").read_text())
    return folder


def folder_of(
    place: Path, results: Mapping[str, Verdict | str | None] = PASSED, *, days: float = 0.0
) -> str:
    """A run folder, begun so many days ago."""
    started = datetime.now(UTC) - timedelta(days=days)
    made = made_runs.run("one", "08:00", results, changes={"started": started.isoformat()})
    return str(made_runs.write_run(place / "one", made))


def policy_of(place: Path, **changes: Any) -> str:
    file = place / "release.yaml"
    file.write_text(yaml.safe_dump({**POLICY, **changes}))
    return str(file)


@pytest.mark.usefixtures("scenarios")
def test_the_worst_comes_first_and_what_passed_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    required = [*POLICY["required"], {"name": "answers", "tests": [SUMS]}]  # type: ignore[misc]
    policy = policy_of(tmp_path, required=required)
    run = folder_of(tmp_path, {**PASSED, "small-c1": Verdict.REGRESSION})
    assert main(["release", "check", policy, run]) == ReleaseStatus.FAILED
    heading, worst, second, third, *lines = capsys.readouterr().out.splitlines()
    assert " ".join(heading.split()) == "required test run found counts as metrics why"
    assert worst.startswith("speed     small-c1                   one  regression  fail")
    assert worst.endswith("output_throughput: 12.3 % lower, which is more than the band of 2.0 %")
    assert second.startswith(f"answers   {SUMS}       missing     fail")
    assert third.startswith("speed     1 test                     one  passed      pass")
    required, metrics, rates, digest, result = lines[-5:]
    assert required.startswith("required: 3 tests (1 regression, 1 missing, 1 passed); 0 more")
    assert (metrics, result) == ("metrics: 2 checked from numbers", "result: FAILED")
    assert rates.startswith("error rates: ")
    assert re.fullmatch(r"required_sha256: [0-9a-f]{64} \(not in the policy, .*\)", digest)


def test_json_and_markdown(
    scenarios: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["release", "check", policy_of(tmp_path), folder_of(tmp_path)]
    call += ["--scenarios", str(scenarios)]
    assert main([*call, "--format", "json"]) == ReleaseStatus.PASSED
    plain = json.loads(capsys.readouterr().out)
    assert {one["finding"] for one in plain["tests"]} == {"passed"}
    assert (plain["result"], plain["machines"]) == ("PASSED", {"one": "node7, Grace"})
    assert main([*call, "--format", "markdown"]) == ReleaseStatus.PASSED
    text = capsys.readouterr().out
    assert text.startswith("# ● PASSED: small 1.3.0\n")
    assert "\n| ● passed | `small` | 2 of 2 | `output_throughput` of c1 |" in text


@each(
    "changes, days, at, status, told",
    [
        ({}, 8.0, "", ReleaseStatus.INCOMPLETE, "stale"),
        ({"max_age_days": 9}, 8.0, "", ReleaseStatus.PASSED, "result: PASSED"),
        ({}, 0.0, "2026-01-01T00:00:00Z", ReleaseStatus.CLOCK, "still to come"),
        ({"build": OTHER}, 0.0, "", ReleaseStatus.MIXED, "version 1.3.0, not 2"),
        ({"required": UNKNOWN}, 0.0, "", ReleaseStatus.POLICY, "no scenario or test of that id"),
        ({"release": 1}, 0.0, "", ReleaseStatus.POLICY, "quote it"),
    ],
)
@pytest.mark.usefixtures("scenarios")
def test_each_status_is_told_with_its_reason(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    days: float,
    at: str,
    status: int,
    told: str,
) -> None:
    run = folder_of(tmp_path, days=days)
    words = ["--at", at] if at else []
    assert main(["release", "check", policy_of(tmp_path, **changes), run, *words]) == status
    out = capsys.readouterr()
    assert told in out.out + out.err


@pytest.mark.usefixtures("scenarios")
def test_warned_has_a_status_of_its_own_where_that_is_asked_for(tmp_path: Path) -> None:
    run = folder_of(tmp_path, {**PASSED, "small-c1": Verdict.INCONCLUSIVE})
    call = ["release", "check", policy_of(tmp_path, effects={"INCONCLUSIVE": "warn"}), run]
    assert main(call) == ReleaseStatus.PASSED
    assert main([*call, "--strict"]) == ReleaseStatus.WARNED


@pytest.mark.usefixtures("scenarios")
def test_what_is_no_run_and_no_time_is_unusable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], perfgate: Perfgate
) -> None:
    assert main(["release", "check", policy_of(tmp_path), str(tmp_path)]) == 2
    assert "no such file" in perfgate.refused(f"release check {tmp_path / 'none.yaml'} {tmp_path}")
    with pytest.raises(SystemExit) as caught:
        main(["release", "check", policy_of(tmp_path), str(tmp_path), "--at", "today"])
    assert caught.value.code == 2
    assert "not a time with a time zone" in capsys.readouterr().err
