"""release.yaml: what is read of it, and each way in which it cannot be used."""

import base64
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from refusals import refused
from releases import SCENARIO, SUITE
from tables import each

from ci.maintenance.pinned_packages import name_in_policy
from perfgate.cli.release.check import suite_tests_of
from perfgate.core.plain import to_plain
from perfgate.judging.assembly.claims import claim_probes
from perfgate.release import policy as policies
from perfgate.release.policy import (
    SCHEMA,
    PolicyRefused,
    Required,
    SuiteTests,
    load_policy,
    required_tests,
)
from perfgate.release.release_status import ReleaseStatus
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.scenario import Claim, EngineChoice, Scenario
from perfgate.scenarios.scenario import Floor as ScenarioFloor

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
KEY = base64.b64encode(bytes(32)).decode()
GROUP = {"name": "all", "select": "local"}
PLAIN = {
    "schema_version": 1,
    "release": "small 1.3.0",
    "build": {"engine": "llama.cpp"},
    "required": [GROUP],
}


def written(folder: Path, **changes: Any) -> Path:
    """A policy's file with fields changed; of those that are None, none."""
    plain = {name: one for name, one in {**PLAIN, **changes}.items() if one is not None}
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return file


def group(**changes: Any) -> dict[str, Any]:
    """`required` with one group."""
    fields = {name: one for name, one in {**GROUP, **changes}.items() if one is not None}
    return {"required": [fields]}


def test_the_published_schema_is_the_one_that_is_used() -> None:
    published = ROOT / "docs" / "reference" / "release_policy.schema.json"
    assert json.loads(published.read_text()) == json.loads(SCHEMA.read_text())


def test_the_shipped_policies_hold_and_require_tests() -> None:
    suite = suite_tests_of([str(ROOT / "scenarios")])
    for name, tests in (
        ("release.local.yaml", {"c1", "c4", "perfgate_arithmetic"}),
        ("release.example.yaml", {"smoke", "c1", "c4096", "gsm8k", "sweep"}),
    ):
        policy = load_policy(ROOT / name, suite)
        assert tests <= {one.subject.label for one in required_tests(policy, suite)}


def test_the_subject_of_the_embedded_default_is_the_file_of_its_packages() -> None:
    (subject,) = load_policy(ROOT / "release.local.yaml").subjects
    digest = hashlib.sha256((ROOT / subject.name).read_bytes()).hexdigest()
    assert subject.digest == {"sha256": digest}, "`make constraints` writes it"


def test_the_digest_of_new_packages_is_written(tmp_path: Path) -> None:
    pinned, policy = tmp_path / "local.txt", tmp_path / "release.local.yaml"
    pinned.write_text("xllamacpp==1\n")
    shutil.copy(ROOT / "release.local.yaml", policy)
    name_in_policy(pinned, policy)
    (subject,) = load_policy(policy).subjects
    assert subject.digest == {"sha256": hashlib.sha256(b"xllamacpp==1\n").hexdigest()}


def test_what_is_left_out_is_the_strict_choice(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path), SUITE)
    assert set(policy.effects.values()) == {"fail"}
    assert policy.required == (Required("all", "local"),)
    assert (policy.max_age_days, policy.false_alarms) == (7, 0.01)
    assert (policy.subjects, policy.signers, policy.set_aside) == ((), (), ())
    assert len(policy.sha256) == 64


def test_every_field(tmp_path: Path) -> None:
    image = f"sha256:{'ab' * 32}"
    full = {
        "release": "small 1.3.0",
        "build": {"engine": "llama.cpp", "version": "1.3", "commit": COMMIT, "image": image},
        "required": [
            {
                **{"name": "all", "select": "local", "tests": ["small-c1"], "hardware": "cpu"},
                **{"documented": False, "floors": [FLOOR], "starts": 5, "max_age_days": 3},
            }
        ],
        "subjects": [{"name": "wheel", "digest": {"sha256": "cd" * 32}}],
        "effects": {**policies.STRICT_EFFECTS, "WAIVED": "pass", "INCONCLUSIVE": "warn"},
        "max_age_days": 2,
        "false_alarms": 0.05,
        "signers": [{"name": "Ada", "key": KEY}],
        "set_aside": [ASIDE],
    }
    plain = to_plain(load_policy(written(tmp_path, **full), SUITE))
    assert {name: plain[name] for name in full} == full
    known = json.loads(SCHEMA.read_text())["properties"].keys()
    assert known - full.keys() == {"schema_version", "required_sha256"}


FLOOR = {"test": "small-c1", "metric": "output_throughput", "limit": 5}
ASIDE = {"run": "one", "test": "small-c1", "reason": "r", "by": "Ada", "link": "https://b/1"}


def with_floors(*changes: dict[str, Any]) -> dict[str, Any]:
    return group(floors=[{**FLOOR, **one} for one in changes])


def subject(**digest: str) -> dict[str, Any]:
    return {"subjects": [{"name": "a", "digest": digest}]}


def build(**fields: Any) -> dict[str, Any]:
    return {"build": {"engine": "llama.cpp", **fields}}


def key(text: str) -> dict[str, Any]:
    return {"signers": [{"name": "Ada", "key": text}]}


@each(
    "changes, field, told",
    [
        # Selects nothing: of all, or of one group.
        ({"required": []}, "required", "empty"),
        ({"required": [GROUP, {"name": "b", "select": "b200"}]}, "required[1].select", "nothing"),
        (group(select="not local"), "required[0].select", "selects nothing"),
        (group(select=None), "required[0]", "selects nothing"),
        # Unknown markers and ids.
        (group(select="locall"), "required[0].select", "did you mean local?"),
        (group(select="local and"), "required[0].select", "malformed marker expression"),
        (group(tests=["small-c2"]), "required[0].tests[0]", "did you mean small-c"),
        # Contradictions.
        (group(hardware="8xB200"), "required[0].hardware", "small-c1 (cpu)"),
        (group(starts=6), "required[0].starts", "at most 5, the gate.max_starts of small"),
        (with_floors({"metric": "outputs"}), "floors[0].metric", "unknown metric"),
        (with_floors({"test": "small-c9"}), "floors[0].test", "not selected"),
        (with_floors({"test": "small-sums"}), "floors[0].metric", "does not give"),
        (with_floors({}, {"limit": 6}), "floors[1].limit", "two limits"),
        ({"required": [GROUP, GROUP]}, "required[1].name", "two groups of one name"),
        (build(commit="f" * 12) | subject(gitCommit=COMMIT), "digest.gitCommit", "not the commit"),
        ({"build": {"engine": "vllm"}}, "required[0]", "another engine"),
        (group(documented=True), "required[0].documented", "no test of the group"),
        ({"required_sha256": "ab" * 32}, "required_sha256", "other tests, or other scenarios"),
        ({"set_aside": [ASIDE, ASIDE]}, "set_aside[1]", "set aside twice"),
        # What may never pass, and what is no value.
        ({"effects": {"INCONCLUSIVE": "pass"}}, "effects.INCONCLUSIVE", "can never pass"),
        ({"effects": {"REGRESSION": "warn"}}, "effects.REGRESSION", "unknown field"),
        ({"effects": {"WAIVED": "passs"}}, "effects.WAIVED", "did you mean pass?"),
        ({"max_age_days": 0}, "max_age_days", "above 0"),
        ({"false_alarms": 0.6}, "false_alarms", "at most 0.5"),
        ({"schema_version": 2}, "schema_version", "Version of this format: 1."),
        ({"release": None}, "release", "missing"),
        ({"release": "a\nb"}, "release", "control character"),
        (build(version=1.3), "build.version", "quote it"),
        (build(commit="0123"), "build.commit", "12 to 40"),
        (build(image="latest"), "build.image", "sha256:"),
        (subject(sha256="ab"), "subjects[0].digest.sha256", "64 hexadecimal digits"),
        (key(base64.b64encode(bytes(31)).decode()), "signers[0].key", "44 characters"),
        (key("A"), "signers[0].key", "keygen"),
    ],
)
def test_what_cannot_be_used(tmp_path, changes, field, told) -> None:
    suite = replace(SUITE, has_document=lambda _: False)
    file = written(tmp_path, **changes)
    error = refused(load_policy, file, suite, error=PolicyRefused)
    assert (error.status, len(error.errors)) == (ReleaseStatus.POLICY, 1), error
    assert (error.field or "").endswith(field), error
    assert told in str(error), error
    assert str(error).startswith(f"{file}:{error.line}: "), error


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    error = refused(load_policy, written(tmp_path, max_age_days=0, false_alarms=2), SUITE)
    assert [one.field for one in error.errors] == ["max_age_days", "false_alarms"]
    assert str(error).count("release.yaml:") == 2


@each(
    ("text", "told"),
    [(None, "no such file"), ("", "empty file"), ("a: [", "broken YAML"), ("[]", "wrong type")],
)
def test_no_file_and_no_policy(tmp_path: Path, text: str | None, told: str) -> None:
    file = tmp_path / "release.yaml"
    if text is not None:
        file.write_text(text)
    error = refused(load_policy, file, SUITE, match=told)
    assert isinstance(error, PolicyRefused) == (text is not None)


OF_BOTH = ("output_throughput", "small", "better", 1, "other")
BEATS = Claim("beats", "faster", SCENARIO.source, *OF_BOTH)


def of_two(small: Scenario, other: Scenario) -> SuiteTests:
    """Two scenarios, their floors, and a claim that the first is faster."""
    scenarios = [small, other]
    claims = claim_probes(claims_of(scenarios, [BEATS]), scenarios)
    return replace(SUITE, scenarios=scenarios, claims=claims, markers={*SUITE.markers, "opt_in"})


def required(folder: Path, suite: SuiteTests, **fields: Any) -> list[str]:
    policy = load_policy(written(folder, **group(**fields)), suite)
    return [one.subject.id for one in required_tests(policy, suite)]


def test_a_scenario_stands_for_all_that_is_about_it_alone(tmp_path: Path) -> None:
    points = replace(SCENARIO.workload, concurrency=(1, 2, 4, 8))  # type: ignore[type-var]
    floors = (ScenarioFloor("output_throughput", 5.0, 1),)
    suite = of_two(replace(SCENARIO, floors=floors, workload=points), replace(SCENARIO, id="other"))
    points_and_tasks = [f"small-{one}" for one in ("c1", "c2", "c4", "c8", "sums", "sweep")]
    found = required(tmp_path, suite, select=None, tests=["small"])
    assert found == [*points_and_tasks, "small-output-throughput-floor"]
    assert required(tmp_path, suite, select=None, tests=["beats"]) == ["beats"]


def test_templates_are_required_by_name_alone(tmp_path: Path) -> None:
    suite = of_two(SCENARIO, replace(SCENARIO, id="other", markers=("opt_in",)))
    for name, select in (("small", "local"), ("other", "opt_in")):
        found = {*required(tmp_path, suite, select=select)} - {"beats"}
        assert found == {f"{name}-{one}" for one in ("c1", "c4", "sums")}


def test_a_claim_may_compare_with_another_engine(tmp_path: Path) -> None:
    suite = of_two(SCENARIO, replace(SCENARIO, id="other", engine=EngineChoice("vllm")))
    assert required(tmp_path, suite, select=None, tests=["beats"]) == ["beats"]
    refused(required, tmp_path, suite, error=PolicyRefused, match=r"other-c1 \(vllm\)")
