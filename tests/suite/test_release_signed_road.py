"""`perfgate release sign` and `verify` on a real session, and on what was tampered with."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from registered_standins import registered_standins
from test_road import Suite, make_suite

from perfgate.cli.main import main
from perfgate.core.durable_files import append_line
from perfgate.release.attestations import payload
from perfgate.release.dsse import envelope_text, read_envelope
from perfgate.release.keys import as_policy_has_it, make_keys, read_private_key
from perfgate.release.pack_layout import MANIFEST, POLICY, SUMMARY, TEST_RESULT
from perfgate.release.pack_manifest import seconds_of
from perfgate.release.pack_reader import open_pack, with_attestations
from perfgate.release.pack_writer import Entry, Ingredient, packed, write_archive, write_pack
from perfgate.release.release_status import ReleaseStatus as Status

pytestmark = pytest.mark.slow

COMMIT, OTHER_COMMIT = "a" * 40, "b" * 40
WHEEL = "c" * 64
RAW = "runs/run/standin-serve/start-2-new/c1/result.json"
THROUGHPUT = "output_throughput"


@dataclass
class Evidence:
    """A pack of a real session, signed, and what it was made of."""

    folder: Path

    @property
    def pack(self) -> Path:
        return self.folder / "signed.tar"

    @property
    def key(self) -> Path:
        return self.folder / "release.key"

    @property
    def policy(self) -> Path:
        return self.folder / "release.yaml"

    def verify(self, *options: str, pack: Path | None = None) -> int:
        words = ["release", "verify", str(pack or self.pack), "--import", "standin"]
        keys = () if "--policy" in options or "--key" in options else ("--key", f"{self.key}.pub")
        return main([*words, *keys, *options])

    def sign(self, pack: Path, *options: str, key: Path | None = None) -> int:
        words = ["release", "sign", str(pack), "--key", str(key or self.key)]
        return main([*words, "--import", "standin", *options])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    """A session with one test that passes, packed and signed."""
    with pytest.MonkeyPatch.context() as patch, registered_standins():
        suite = make_suite(tmp_path_factory.mktemp("signed"))
        of = ("--engine-commit", COMMIT, "--engine-version", "1.0")
        done = suite.run("perf_tests/test_serving.py", "-k", "c1", *of)
        assert done.verdicts == {"c1": "PASS"}, done.output
        patch.chdir(suite.folder)
        for name in ("PERFGATE_ROOT", "PERFGATE_HOME"):
            patch.setenv(name, suite.environment[name])
        evidence = Evidence(suite.folder)
        make_keys(evidence.key)
        write_policy(evidence)
        assert evidence_packed(suite, "signed.tar") == 0
        assert evidence.sign(evidence.pack) == 0
        yield evidence


@pytest.fixture
def evidence(made: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    for name in ("signed.tar", "release.key", "release.key.pub", "release.yaml"):
        shutil.copy2(made.folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)  # nothing beside the pack is there
    return Evidence(tmp_path)


def evidence_packed(suite: Suite, name: str) -> int:
    words = ["release", "pack", str(suite.folder / "release.yaml"), str(suite.folder / "run")]
    return main([*words, "--import", "standin", "--yes", "--output", str(suite.folder / name)])


def write_policy(evidence: Evidence, **changes: object) -> None:
    public = as_policy_has_it(read_private_key(evidence.key).public_key())
    policy = {
        "schema_version": 1,
        "release": "stand-in 1.0",
        "build": {"engine": "stand-in", "version": "1.0", "commit": COMMIT},
        "required": [{"name": "serving", "tests": ["standin-serve-c1"]}],
        "subjects": [{"name": "engine.whl", "digest": {"sha256": WHEEL}}],
        "signers": [{"name": "Ada", "key": public}],
        **changes,
    }
    evidence.policy.write_text(yaml.safe_dump(policy))


def key_of_another(folder: Path) -> Path:
    make_keys(folder / "other.key")
    return folder / "other.key"


def contents(pack: Path) -> dict[str, bytes]:
    opened = open_pack(pack)
    return {one.path: opened.read(one.path) for one in opened.files()}


def remade(pack: Path, change: Callable[[dict[str, bytes]], None], **manifest: object) -> Path:
    """The pack with other files, a manifest that says so, and the signatures that it had."""
    opened = open_pack(pack)
    roles = {one.path: one.role for one in opened.files()}
    files = contents(pack)
    change(files)
    new = [Ingredient(path, roles.get(path, "log"), content) for path, content in files.items()]
    listed = tuple(sorted(map(packed, new), key=lambda one: one.path))
    write_pack(pack, replace(opened.manifest, files=listed, **manifest), new)  # type: ignore[arg-type]
    with_attestations(pack, opened.attestations)
    return pack


def signed_by_hand(pack: Path, key: Path, change: Callable[[str, dict[str, Any]], None]) -> None:
    """Statements that somebody changed, of this manifest, signed with a key."""
    opened = open_pack(pack)
    new = {}
    for name, content in opened.attestations.items():
        statement = json.loads(read_envelope(content).payload)
        statement["predicate"]["perfgate_manifest"] = {"sha256": opened.manifest_sha256}
        change(name, statement)
        new[name] = envelope_text(payload(statement), [read_private_key(key)])
    with_attestations(pack, new)


def as_it_is(_name: str, _statement: dict[str, Any]) -> None:
    pass


def replaced(path: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        (name,) = [one for one in files if one.endswith(path)]
        assert old in files[name], name
        files[name] = files[name].replace(old, new)

    return change


def byte_changed(pack: Path, path: str) -> None:
    entry = next(one for name, one in open_pack(pack).entries.items() if name.endswith(path))
    with pack.open("r+b") as file:
        file.seek(entry.offset + entry.size // 2)
        old = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([old[0] ^ 1]))


def test_an_untouched_pack_holds(evidence: Evidence, capsys: pytest.CaptureFixture[str]) -> None:
    assert evidence.verify() == Status.PASSED
    told = capsys.readouterr().out
    assert "1 of 1 computed anew from raw files, all as recorded" in told
    assert "which release this is was not checked" in told
    assert "Ada" in told
    wanted = ("--policy", str(evidence.policy), "--commit", COMMIT[:12])
    assert evidence.verify(*wanted, "--subject", f"engine.whl=sha256:{WHEEL}") == Status.PASSED
    told = capsys.readouterr().out
    assert "was not checked" not in told
    assert f"stand-in gitCommit:{COMMIT}" in told
    assert evidence.verify("--format", "json") == Status.PASSED
    found = json.loads(capsys.readouterr().out)
    assert (found["result"], found["verdicts_recomputed"], found["metrics_recomputed"]) == (
        "PASSED", 1, 1,
    )  # fmt: skip


def test_signing_again_changes_nothing_but_the_time(evidence: Evidence) -> None:
    first = open_pack(evidence.pack).attestations
    assert evidence.sign(evidence.pack, "--output", "again.tar") == 0
    second = open_pack(Path("again.tar")).attestations
    assert first[TEST_RESULT] == second[TEST_RESULT]
    summaries = [json.loads(read_envelope(one[SUMMARY]).payload) for one in (first, second)]
    for one in summaries:
        assert one["predicate"].pop("timeCreated").endswith("Z")
        assert "PERFGATE_RELEASE_POLICY_PASSED" in one["predicate"]["properties"]
    assert summaries[0] == summaries[1]
    assert evidence.sign(evidence.pack, "--output", "again.tar") == 2


@pytest.mark.parametrize(
    "path",
    ["start-2-new/c1/result.json", "records.jsonl", "run.json", POLICY, "standin.yaml", MANIFEST],
)
def test_a_changed_byte(evidence: Evidence, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    byte_changed(evidence.pack, path)
    assert evidence.verify() == Status.BROKEN_PACK
    assert path in capsys.readouterr().err


def test_a_changed_byte_with_a_manifest_made_anew(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    remade(evidence.pack, replaced(POLICY, b"stand-in 1.0", b"stand-in 2.0"))
    assert evidence.verify() == Status.SIGNATURE
    assert "the signed manifest is not this one" in capsys.readouterr().err


def test_extra_and_missing_files(evidence: Evidence, capsys: pytest.CaptureFixture[str]) -> None:
    opened = open_pack(evidence.pack)
    whole = {name: opened.read(name) for name in opened.entries}
    lacking = {name: one for name, one in whole.items() if not name.endswith("c1/result.json")}
    for files, told in (({**whole, "runs/run/x.log": b""}, "extra"), (lacking, "is missing")):
        entries = [Entry(name, len(content), [content]) for name, content in files.items()]
        write_archive(evidence.pack, entries, seconds_of(opened.manifest))
        assert evidence.verify() == Status.BROKEN_PACK
        assert told in capsys.readouterr().err


def test_extra_and_missing_files_with_a_manifest_that_says_so(evidence: Evidence) -> None:
    remade(evidence.pack, lambda files: files.update({"runs/run/more.log": b"x"}))
    assert evidence.verify() == Status.SIGNATURE
    signed_by_hand(evidence.pack, evidence.key, as_it_is)
    assert evidence.verify() == Status.NOT_REPRODUCED  # the number of files is stated
    remade(evidence.pack, lambda files: files.pop("runs/run/more.log") and None)
    signed_by_hand(evidence.pack, evidence.key, as_it_is)
    assert evidence.verify() == Status.PASSED
    remade(evidence.pack, lambda files: files.pop(RAW) and None)
    assert evidence.sign(evidence.pack) == Status.NOT_REPRODUCED


def test_everything_made_anew_and_signed_by_somebody_else(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = key_of_another(tmp_path)
    remade(evidence.pack, replaced(POLICY, b"stand-in 1.0", b"stand-in 2.0"))
    signed_by_hand(evidence.pack, other, as_it_is)
    assert evidence.verify() == Status.SIGNATURE
    assert "no signature of a known signer" in capsys.readouterr().err
    assert evidence.verify("--key", f"{other}.pub") == Status.SIGNATURE
    assert "not among those whom the pack's policy names" in capsys.readouterr().err


def test_a_signer_whom_the_policy_does_not_name_cannot_sign(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evidence.sign(evidence.pack, key=key_of_another(tmp_path)) == Status.SIGNATURE
    assert "Ada" in capsys.readouterr().err


def test_a_result_that_the_verdicts_do_not_give(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def flipped(name: str, statement: dict[str, Any]) -> None:
        if name == TEST_RESULT:
            statement["predicate"]["result"] = "WARNED"

    signed_by_hand(evidence.pack, key_of_another(tmp_path), flipped)
    assert evidence.verify() == Status.SIGNATURE
    signed_by_hand(evidence.pack, evidence.key, flipped)
    capsys.readouterr()
    assert evidence.verify() == Status.NOT_REPRODUCED
    told = capsys.readouterr().err
    assert "what the pack's own files do not give" in told
    assert 'found: "WARNED"' in told


@pytest.mark.parametrize("field", ["passedTests", "configuration", "perfgate_counts"])
def test_any_other_field_that_is_not_so(evidence: Evidence, field: str) -> None:
    def less(name: str, statement: dict[str, Any]) -> None:
        if name == TEST_RESULT:
            statement["predicate"][field] = []

    signed_by_hand(evidence.pack, evidence.key, less)
    assert evidence.verify() == Status.NOT_REPRODUCED


def test_another_subject(evidence: Evidence, capsys: pytest.CaptureFixture[str]) -> None:
    def swapped(_name: str, statement: dict[str, Any]) -> None:
        statement["subject"] = [{"name": "stand-in", "digest": {"gitCommit": OTHER_COMMIT}}]

    signed_by_hand(evidence.pack, evidence.key, swapped)
    assert evidence.verify() == Status.OTHER_RELEASE
    assert evidence.verify("--commit", OTHER_COMMIT) == Status.OTHER_RELEASE
    assert "another artifact than the runs measured" in capsys.readouterr().err


def test_a_record_made_anew_with_every_checksum_and_the_right_key(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def faster(files: dict[str, bytes]) -> None:
        folder = tmp_path / "rewritten"
        folder.mkdir()
        (folder / "run.json").write_bytes(files["runs/run/run.json"])
        for text in files["runs/run/records.jsonl"].decode().splitlines():
            line = json.loads(text)
            line.pop("checksum", None)
            if line["record"] == "measurement":
                line["metrics"][THROUGHPUT] *= 2
            append_line(folder / "records.jsonl", line, base=folder / "run.json")
        files["runs/run/records.jsonl"] = (folder / "records.jsonl").read_bytes()

    remade(evidence.pack, faster)
    signed_by_hand(evidence.pack, evidence.key, as_it_is)
    assert evidence.verify() == Status.NOT_REPRODUCED
    assert "the raw files do not give what the records say" in capsys.readouterr().err
    assert evidence.sign(evidence.pack) == Status.NOT_REPRODUCED


def test_a_record_changed_without_its_checksum_and_the_right_key(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    remade(
        evidence.pack,
        replaced("runs/run/records.jsonl", b'"verdict": "PASS"', b'"verdict": "FAST"'),
    )
    signed_by_hand(evidence.pack, evidence.key, as_it_is)
    assert evidence.verify() == Status.NOT_REPRODUCED
    assert "checksum" in capsys.readouterr().err


def test_an_older_pack_is_of_another_commit_or_policy(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evidence.verify("--commit", OTHER_COMMIT) == Status.OTHER_RELEASE
    assert "the pack is of another build" in capsys.readouterr().err
    assert evidence.verify("--subject", f"engine.whl=sha256:{'d' * 64}") == Status.OTHER_RELEASE
    write_policy(evidence, release="stand-in 1.1")
    assert evidence.verify("--policy", str(evidence.policy)) == Status.OTHER_RELEASE
    assert "held against another policy" in capsys.readouterr().err


def test_an_older_pack_of_the_same_commit_has_expired(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from perfgate.cli import release_verify

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=30)

    monkeypatch.setattr(release_verify, "datetime", Later)
    assert evidence.verify("--commit", COMMIT) == Status.EXPIRED
    assert "stale" in capsys.readouterr().err
    at = datetime.now(UTC).isoformat()
    assert evidence.verify("--commit", COMMIT, "--at", at) == Status.PASSED
    assert "as --at states; not of today" in capsys.readouterr().out
    assert evidence.verify("--at", "2020-01-01T00:00:00+00:00") == Status.CLOCK


def test_an_attestation_of_another_pack(
    evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.tar"
    shutil.copy(evidence.pack, other)
    remade(other, replaced(POLICY, b"stand-in 1.0", b"stand-in 0.9"))
    assert evidence.sign(other) == 0
    with_attestations(evidence.pack, open_pack(other).attestations)
    assert evidence.verify() == Status.SIGNATURE
    assert "a statement about release stand-in 0.9" in capsys.readouterr().err


def test_a_pack_that_nobody_signed(evidence: Evidence, capsys: pytest.CaptureFixture[str]) -> None:
    opened = open_pack(evidence.pack)
    new = [Ingredient(one.path, one.role, opened.read(one.path)) for one in opened.files()]
    write_pack(evidence.pack, opened.manifest, new)
    assert evidence.verify() == Status.SIGNATURE
    assert "the pack is not signed" in capsys.readouterr().err
    with_attestations(evidence.pack, {TEST_RESULT: opened.attestations[TEST_RESULT]})
    assert evidence.verify() == Status.SIGNATURE
    with_attestations(evidence.pack, {SUMMARY: opened.attestations[TEST_RESULT]})
    assert evidence.verify() == Status.SIGNATURE
    assert "of another kind" in capsys.readouterr().err


def test_a_pack_of_another_rule(evidence: Evidence, capsys: pytest.CaptureFixture[str]) -> None:
    remade(evidence.pack, lambda _files: None, rule="2", perfgate="0.0.9")
    signed_by_hand(evidence.pack, evidence.key, as_it_is)
    assert evidence.verify() == Status.OTHER_VERSION
    assert "use perfgate 0.0.9" in capsys.readouterr().err


def test_keys_that_cannot_be_used(evidence: Evidence, capsys: pytest.CaptureFixture[str]) -> None:
    assert evidence.verify("--key", str(evidence.key)) == Status.KEY
    told = capsys.readouterr()
    assert evidence.key.read_text().splitlines()[1] not in told.out + told.err
    evidence.key.chmod(0o644)
    assert evidence.sign(evidence.pack) == Status.KEY
    assert "chmod 600" in capsys.readouterr().err
    assert main(["release", "verify", str(evidence.pack), "--import", "standin"]) == 2
    assert "a pack cannot say itself whom to trust" in capsys.readouterr().err
    assert main(["release", "keygen", "--output", str(evidence.key)]) == 2


def test_a_release_that_failed_is_signed_as_that(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    floor = {"test": "standin-serve-c1", "metric": THROUGHPUT, "limit": 1e9}
    slow = {"name": "serving", "tests": ["standin-serve-c1"], "floors": [floor]}
    write_policy(evidence, required=[slow])
    text = evidence.policy.read_bytes()
    remade(evidence.pack, lambda files: files.update({POLICY: text}))
    assert evidence.sign(evidence.pack) == 0
    assert "FAILED" in capsys.readouterr().out
    statement = json.loads(
        read_envelope(open_pack(evidence.pack).attestations[TEST_RESULT]).payload
    )
    assert statement["predicate"]["result"] == "FAILED"
    assert statement["predicate"]["failedTests"] == ["standin-serve/c1"]
    assert evidence.verify() == Status.FAILED
