"""`perfgate release check` on a real session of the suite, played by stand-ins of the tests."""

import json

import forked
import pytest
import yaml
from test_road import Suite, make_suite

from perfgate.release.release_status import ReleaseStatus

pytestmark = pytest.mark.slow

POLICY = {
    "schema_version": 1,
    "release": "the stand-in",
    "build": {"engine": "stand-in", "version": "1.0"},
    "required": [
        {"name": "speed", "tests": ["standin-serve-c1", "standin-serve-c2"], "starts": 2},
        {"name": "answers", "tests": ["standin-serve-sums"]},
    ],
    "effects": {"NO_BASELINE": "warn"},
    "false_alarms": 0.5,
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """A checkout with a run: speed judged by the machine's own reference, answers by nothing."""
    made = make_suite(tmp_path_factory.mktemp("measured"))
    done = made.run()
    assert done.verdicts == {"c1": "PASS", "c2": "PASS", "sums": "NO_BASELINE"}, done.output
    return made


def release(suite: Suite, *words: str, **changes: object) -> tuple[int, str]:
    """`perfgate release check` of a run of the checkout: its exit status, and what it printed."""
    policy = suite.folder / "release.yaml"
    policy.write_text(yaml.safe_dump({**POLICY, **changes}))
    where = (str(policy), str(suite.folder / "run"), "--scenarios", str(suite.folder / "scenarios"))
    return forked.outcome(suite.perfgate("release", "check", *where, *words))


def test_a_release_of_a_real_session(measured: Suite) -> None:
    status, told = release(measured, "--import", "standin", "--strict")
    assert status == ReleaseStatus.WARNED, told
    lines = told.splitlines()
    assert lines[1].split()[:2] == ["answers", "standin-serve-sums"]
    assert lines[2].split()[:3] == ["speed", "2", "tests"]
    assert "metrics: 2 checked from numbers" in lines
    assert lines[-1] == "result: WARNED"


def test_its_json_is_the_whole_check_and_left_out_effects_are_strict(measured: Suite) -> None:
    status, told = release(measured, "--import", "standin", "--format", "json", effects={})
    assert status == ReleaseStatus.INCOMPLETE, told
    found = json.loads(told)
    assert [one["finding"] for one in found["tests"]] == ["passed", "passed", "no baseline"]
    assert (found["result"], found["policy"]["release"]) == ("FAILED", "the stand-in")
    assert found["tests"][0]["result"]["build"]["name"] == "stand-in"
