"""`perfgate release sign` and `verify` on a real session, and on what was tampered with."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkouts import Suite, copied
from registered_standins import registered_standins
from tables import each

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

Files = dict[str, bytes]
Change = Callable[[str, dict[str, Any]], object]


# All of it is in the working folder, and nothing else.
PACK, KEY, RULES = Path("signed.tar"), Path("release.key"), Path("release.yaml")


def verify(*options: str) -> int:
    words = ["release", "verify", str(PACK), "--import", "standin"]
    keys = () if "--policy" in options or "--key" in options else ("--key", f"{KEY}.pub")
    return main([*words, *keys, *options])


def sign(*options: str, key: Path = KEY) -> int:
    return main(["release", "sign", str(PACK), "--key", str(key), "--import", "standin", *options])


def key_of_another() -> Path:
    make_keys(Path("other.key"))
    return Path("other.key")


def write_policy(**changes: object) -> None:
    public = as_policy_has_it(read_private_key(KEY).public_key())
    policy = {
        "schema_version": 1,
        "release": "stand-in 1.0",
        "build": {"engine": "stand-in", "version": "1.0", "commit": COMMIT},
        "required": [{"name": "serving", "tests": ["standin-serve-c1"]}],
        "subjects": [{"name": "engine.whl", "digest": {"sha256": WHEEL}}],
        "signers": [{"name": "Ada", "key": public}],
        **changes,
    }
    RULES.write_text(yaml.safe_dump(policy))


def remake(change: Callable[[Files], object], **manifest: Any) -> None:
    """Other files, a manifest that says so, and the signatures that it had."""
    opened = open_pack(PACK)
    roles = {one.path: one.role for one in opened.files()}
    files = {path: opened.read(path) for path in roles}
    change(files)
    new = [Ingredient(path, roles.get(path, "log"), content) for path, content in files.items()]
    listed = tuple(sorted(map(packed, new), key=lambda one: one.path))
    write_pack(PACK, replace(opened.manifest, files=listed, **manifest), new)
    with_attestations(PACK, opened.attestations)


def sign_by_hand(change: Change | None = None, key: Path = KEY) -> None:
    """Statements of this manifest that somebody changed, signed with a key."""
    opened = open_pack(PACK)
    new = {}
    for name, content in opened.attestations.items():
        statement = json.loads(read_envelope(content).payload)
        statement["predicate"]["perfgate_manifest"] = {"sha256": opened.manifest_sha256}
        if change:
            change(name, statement)
        new[name] = envelope_text(payload(statement), [read_private_key(key)])
    with_attestations(PACK, new)


@pytest.fixture(scope="module")
def made(one_point: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A session with one test that passes, packed and signed."""
    suite = copied(one_point, tmp_path_factory.mktemp("signed"))
    with pytest.MonkeyPatch.context() as patch, registered_standins():
        patch.chdir(suite.folder)
        for name in ("PERFGATE_ROOT", "PERFGATE_HOME"):
            patch.setenv(name, suite.environment[name])
        make_keys(KEY)
        write_policy()
        words = ["release", "pack", str(RULES), "run", "--import", "standin", "--yes"]
        assert main([*words, "--output", str(PACK)]) == 0
        assert sign() == 0
        yield suite.folder


def copy(made: Path) -> None:
    for name in (PACK, KEY, f"{KEY}.pub", RULES):
        shutil.copy2(made / name, Path())


@pytest.fixture(autouse=True)
def _evidence(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copy(made)


def test_an_untouched_pack_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify() == Status.PASSED
    told = capsys.readouterr().out
    assert "1 of 1 computed anew from raw files, all as recorded" in told
    assert "which release this is was not checked" in told
    assert "Ada" in told
    wanted = ("--policy", str(RULES), "--commit", COMMIT[:12])
    assert verify(*wanted, "--subject", f"engine.whl=sha256:{WHEEL}") == Status.PASSED
    told = capsys.readouterr().out
    assert "which release this is was not checked" not in told
    assert f"stand-in gitCommit:{COMMIT}" in told
    assert verify("--format", "json") == Status.PASSED
    found = json.loads(capsys.readouterr().out)
    assert found["result"] == "PASSED"
    assert (found["verdicts_recomputed"], found["metrics_recomputed"]) == (1, 1)


def test_signing_again_changes_nothing_but_the_time() -> None:
    first = open_pack(PACK).attestations
    assert sign("--output", "again.tar") == 0
    second = open_pack(Path("again.tar")).attestations
    assert first[TEST_RESULT] == second[TEST_RESULT]
    summaries = [json.loads(read_envelope(one[SUMMARY]).payload) for one in (first, second)]
    for one in summaries:
        assert one["predicate"].pop("timeCreated").endswith("Z")
        assert "PERFGATE_RELEASE_POLICY_PASSED" in one["predicate"]["properties"]
    assert summaries[0] == summaries[1]
    assert sign("--output", "again.tar") == 2


# What somebody did to a pack, each before it is verified.


def byte_changed(path: str) -> Callable[[], None]:
    def change() -> None:
        entries = open_pack(PACK).entries.items()
        entry = next(one for name, one in entries if name.endswith(path))
        with PACK.open("r+b") as file:
            file.seek(entry.offset + entry.size // 2)
            old = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([old[0] ^ 1]))

    return change


def archived(change: Callable[[Files], object]) -> Callable[[], None]:
    """Other files, and the manifest that it had."""

    def run() -> None:
        opened = open_pack(PACK)
        files = {name: opened.read(name) for name in opened.entries}
        change(files)
        entries = [Entry(name, len(content), [content]) for name, content in files.items()]
        write_archive(PACK, entries, seconds_of(opened.manifest))

    return run


def remade(change: Callable[[Files], object], **manifest: Any) -> Callable[[], None]:
    return lambda: remake(change, **manifest)


def remade_and_signed(change: Callable[[Files], object], **manifest: Any) -> Callable[[], None]:
    """By somebody with the right key."""

    def run() -> None:
        remake(change, **manifest)
        sign_by_hand()

    return run


def stated(change: Change) -> Callable[[], None]:
    """Another statement, signed with the right key."""
    return lambda: sign_by_hand(change)


def replaced(path: str, old: str, new: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        assert old.encode() in files[path]
        files[path] = files[path].replace(old.encode(), new.encode())

    return change


def more(files: Files) -> None:
    files["runs/run/more.log"] = b"x"


def result(field: str, value: object) -> Change:
    def change(name: str, statement: dict[str, Any]) -> None:
        if name == TEST_RESULT:
            statement["predicate"][field] = value

    return change


def swapped(_name: str, statement: dict[str, Any]) -> None:
    statement["subject"] = [{"name": "stand-in", "digest": {"gitCommit": OTHER_COMMIT}}]


def faster(files: Files) -> None:
    """Twice the throughput, with every checksum."""
    lines = files["runs/run/records.jsonl"].decode().splitlines()
    base, records = Path("run.json"), Path("records.jsonl")
    base.write_bytes(files["runs/run/run.json"])
    records.unlink(missing_ok=True)
    for line in map(json.loads, lines):
        line.pop("checksum", None)
        if line["record"] == "measurement":
            line["metrics"][THROUGHPUT] *= 2
        append_line(records, line, base=base)
    files["runs/run/records.jsonl"] = records.read_bytes()


def by_somebody_else() -> None:
    remake(OTHER_RELEASE)
    sign_by_hand(key=key_of_another())


def with_those_of_another_pack() -> None:
    before = PACK.read_bytes()
    remake(replaced(POLICY, "stand-in 1.0", "stand-in 0.9"))
    assert sign() == 0
    attestations = open_pack(PACK).attestations
    PACK.write_bytes(before)
    with_attestations(PACK, attestations)


def unsigned() -> None:
    opened = open_pack(PACK)
    new = [Ingredient(one.path, one.role, opened.read(one.path)) for one in opened.files()]
    write_pack(PACK, opened.manifest, new)


def signed_only(*names: str) -> Callable[[], None]:
    """With the statement on the tests alone, under these names."""

    def change() -> None:
        statement = open_pack(PACK).attestations[TEST_RESULT]
        unsigned()
        with_attestations(PACK, dict.fromkeys(names, statement))

    return change


OTHER_RELEASE = replaced(POLICY, "stand-in 1.0", "stand-in 2.0")
FORGED = replaced("runs/run/records.jsonl", '"verdict": "PASS"', '"verdict": "FAST"')


@each(
    ("tamper", "status", "told"),
    [
        (byte_changed("c1/result.json"), Status.BROKEN_PACK, "c1/result.json"),
        (byte_changed(POLICY), Status.BROKEN_PACK, POLICY),
        (byte_changed("standin.yaml"), Status.BROKEN_PACK, "standin.yaml"),
        (byte_changed(MANIFEST), Status.BROKEN_PACK, MANIFEST),
        (archived(more), Status.BROKEN_PACK, "extra"),
        (archived(lambda files: files.pop(RAW)), Status.BROKEN_PACK, "is missing"),
        (remade(OTHER_RELEASE), Status.SIGNATURE, "the signed manifest is not this one"),
        (remade(more), Status.SIGNATURE, "the signed manifest is not this one"),
        # The number of files is stated.
        (remade_and_signed(more), Status.NOT_REPRODUCED, "the pack's own files do not give"),
        (by_somebody_else, Status.SIGNATURE, "no signature of a known signer"),
        (stated(result("result", "WARNED")), Status.NOT_REPRODUCED, 'found: "WARNED"'),
        (stated(result("passedTests", [])), Status.NOT_REPRODUCED, ""),
        (stated(result("configuration", [])), Status.NOT_REPRODUCED, ""),
        (stated(result("perfgate_counts", [])), Status.NOT_REPRODUCED, ""),
        (stated(swapped), Status.OTHER_RELEASE, "another artifact than the runs measured"),
        (remade_and_signed(faster), Status.NOT_REPRODUCED, "do not give what the records say"),
        (remade_and_signed(FORGED), Status.NOT_REPRODUCED, "checksum"),
        (with_those_of_another_pack, Status.SIGNATURE, "about release stand-in 0.9"),
        (unsigned, Status.SIGNATURE, "the pack is not signed"),
        (signed_only(TEST_RESULT), Status.SIGNATURE, ""),
        (signed_only(TEST_RESULT, SUMMARY), Status.SIGNATURE, "of another kind"),
        (
            remade_and_signed(lambda _: None, rule="2", perfgate="0.0.9"),
            Status.OTHER_VERSION,
            "use perfgate 0.0.9",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__qualname__", value),
)
def test_what_was_tampered_with_is_refused(
    made: Path,
    capsys: pytest.CaptureFixture[str],
    tamper: Callable[[], None],
    status: Status,
    told: str,
) -> None:
    copy(made)
    tamper()
    capsys.readouterr()
    assert verify() == status
    assert told in capsys.readouterr().err


def of_suite(made: Path, change: Callable[[str], str] = str) -> str:
    """The folder of the verifier's own scenario files."""
    folder = Path("mine")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made / "scenarios", folder)
    for file in folder.glob("*.yaml"):
        file.write_text(change(file.read_text()))
    return str(folder)


def test_what_the_pack_requires_is_held_against_scenarios_of_ones_own(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify() == Status.PASSED
    assert "which tests are required was not checked" in capsys.readouterr().out
    assert verify("--scenarios", of_suite(made)) == Status.PASSED
    told = capsys.readouterr().out
    assert "as the given scenarios have it" in told
    assert "standin-serve-c1" in told
    assert "which tests are required was not checked" not in told


@each(
    "change",
    [
        lambda text: text.replace("max_starts: 4", "max_starts: 6"),
        lambda text: text.replace("id: standin-serve", "id: another"),
    ],
    ids=["other gate", "none of that id"],
)
def test_a_pack_of_trimmed_or_changed_scenarios_is_refused(
    made: Path, capsys: pytest.CaptureFixture[str], change: Callable[[str], str]
) -> None:
    mine = of_suite(made, change)
    assert verify("--scenarios", mine) == Status.OTHER_RELEASE
    assert "the pack's scenarios are not the given ones" in capsys.readouterr().err


def test_who_is_not_named_by_the_policy_cannot_sign_nor_be_trusted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = key_of_another()
    assert sign(key=other) == Status.SIGNATURE
    assert "Ada" in capsys.readouterr().err
    sign_by_hand(key=other)
    assert verify("--key", f"{other}.pub") == Status.SIGNATURE
    assert "not among those whom the pack's policy names" in capsys.readouterr().err


@each("change", [faster, lambda files: files.pop(RAW)], ids=["faster", "missing"])
def test_what_the_raw_files_do_not_give_is_not_signed(
    made: Path, change: Callable[[Files], object]
) -> None:
    copy(made)
    remake(change)
    assert sign() == Status.NOT_REPRODUCED


def test_an_older_pack_is_of_another_commit_or_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--commit", OTHER_COMMIT) == Status.OTHER_RELEASE
    assert "the pack is of another build" in capsys.readouterr().err
    assert verify("--subject", f"engine.whl=sha256:{'d' * 64}") == Status.OTHER_RELEASE
    write_policy(release="stand-in 1.1")
    assert verify("--policy", str(RULES)) == Status.OTHER_RELEASE
    assert "held against another policy" in capsys.readouterr().err


def test_an_older_pack_of_the_same_commit_has_expired(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from perfgate.cli import release_verify

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=30)

    monkeypatch.setattr(release_verify, "datetime", Later)
    assert verify("--commit", COMMIT) == Status.EXPIRED
    assert "stale" in capsys.readouterr().err
    at = datetime.now(UTC).isoformat()
    assert verify("--commit", COMMIT, "--at", at) == Status.PASSED
    assert "as --at states; not of today" in capsys.readouterr().out
    assert verify("--at", "2020-01-01T00:00:00+00:00") == Status.CLOCK


def test_keys_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--key", str(KEY)) == Status.KEY
    told = capsys.readouterr()
    assert KEY.read_text().splitlines()[1] not in told.out + told.err
    KEY.chmod(0o644)
    assert sign() == Status.KEY
    assert "chmod 600" in capsys.readouterr().err
    assert main(["release", "verify", str(PACK), "--import", "standin"]) == 2
    assert "a pack cannot say itself whom to trust" in capsys.readouterr().err
    assert main(["release", "keygen", "--output", str(KEY)]) == 2


def test_a_release_that_failed_is_signed_as_that(capsys: pytest.CaptureFixture[str]) -> None:
    floor = {"test": "standin-serve-c1", "metric": THROUGHPUT, "limit": 1e9}
    slow = {"name": "serving", "tests": ["standin-serve-c1"], "floors": [floor]}
    write_policy(required=[slow])
    text = RULES.read_bytes()
    remake(lambda files: files.update({POLICY: text}))
    assert sign() == 0
    assert "FAILED" in capsys.readouterr().out
    statement = json.loads(read_envelope(open_pack(PACK).attestations[TEST_RESULT]).payload)
    assert statement["predicate"]["result"] == "FAILED"
    assert statement["predicate"]["failedTests"] == ["standin-serve/c1"]
    assert verify() == Status.FAILED
