"""`perfgate release sign` and `verify` on a real session, and on everything that was attacked."""

import base64
import gzip
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkouts import Suite, rerecord, says, twice_as_fast
from made_packs import archive, files_of
from msgspec import structs
from registered_standins import registered_standins
from tables import each

from perfgate.cli.main import main
from perfgate.cli.release import signature
from perfgate.core.verdict import RULE_VERSION
from perfgate.release import pack_archive
from perfgate.release.attestation import envelope
from perfgate.release.keys import as_policy_has_it, make_keys, read_private_key
from perfgate.release.pack_archive import (
    ATTESTATION,
    MANIFEST,
    POLICY,
    Ingredient,
    open_pack,
    with_attestation,
    write_pack,
)
from perfgate.release.release_status import ReleaseStatus as Status

pytestmark = pytest.mark.slow

COMMIT, OTHER_COMMIT = "a" * 40, "b" * 40
WHEEL = "c" * 64
RAW = "runs/run/standin-serve/start-1-new/c1/result.json"
THROUGHPUT = "output_throughput"

Files = dict[str, bytes]
Change = Callable[..., object]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

# All of it is in the working folder, and nothing else.
PACK, KEY, RULES = Path("signed.tar"), Path("release.key"), Path("release.yaml")


def release(verb: str, *words: str) -> int:
    return main(["release", verb, *words, "--import", "standin"])


def verify(*options: str) -> int:
    keys = () if "--policy" in options or "--key" in options else ("--key", f"{KEY}.pub")
    return release("verify", str(PACK), *keys, *options)


def sign(*options: str, key: Path = KEY) -> int:
    return release("sign", str(PACK), "--key", str(key), *options)


def pack(run: Path = Path("run")) -> int:
    return release("pack", str(RULES), str(run), "--yes", "--output", str(PACK))


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


def statement_of(pack: Path) -> dict[str, Any]:
    plain = json.loads(files_of(pack)[ATTESTATION])
    return json.loads(base64.b64decode(plain["payload"]))


@pytest.fixture(scope="module")
def made(one_point: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A session with one test that passes, packed and signed."""
    suite = one_point.copy(tmp_path_factory.mktemp("signed"))
    with pytest.MonkeyPatch.context() as patch, registered_standins():
        patch.chdir(suite.folder)
        for name in ("PERFGATE_ROOT", "PERFGATE_HOME"):
            patch.setenv(name, suite.environment[name])
        make_keys(KEY)
        write_policy()
        assert pack() == sign() == 0
        yield suite.folder


def copy(made: Path) -> None:
    for name in (PACK, KEY, f"{KEY}.pub", RULES):
        shutil.copy2(made / name, Path())


@pytest.fixture(autouse=True)
def _evidence(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copy(made)


def test_an_untouched_pack_holds(capsys: Capture) -> None:
    assert verify() == Status.PASSED
    unchecked = "which release this is was not checked"
    told = capsys.readouterr().out
    says(told, "1 of 1 computed again from raw files, all as recorded", unchecked, "Ada")
    wanted = ("--policy", str(RULES), "--commit", COMMIT[:12])
    assert verify(*wanted, "--subject", f"engine.whl=sha256:{WHEEL}") == Status.PASSED
    told = capsys.readouterr().out
    assert (unchecked in told, f"stand-in gitCommit:{COMMIT}" in told) == (False, True), told
    assert verify("--format", "json") == Status.PASSED
    found = json.loads(capsys.readouterr().out)
    assert found["result"] == "PASSED"
    assert (found["verdicts_recomputed"], found["metrics_recomputed"]) == (1, 1)


def test_signing_again_anywhere_changes_nothing_but_the_time(
    monkeypatch: Patch, capsys: Capture
) -> None:
    """Reports, certificates and scripts are rendered again from check and runs alone."""
    monkeypatch.setenv("HF_TOKEN", "standin-serve")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert verify() == sign("--output", "again.tar") == Status.PASSED
    assert "reports, certificates and scripts again, all as packed" in capsys.readouterr().out
    first, second = (statement_of(one)["predicate"] for one in (PACK, Path("again.tar")))
    for one in (first, second):
        assert one.pop("perfgate_signedAt").endswith("+00:00")
    assert first == second
    assert sign("--output", "again.tar") == 2


def test_only_the_perfgate_that_packed_it_signs_or_verifies(
    monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr(pack_archive, "version", lambda _: "99.0")
    for verb in (sign, verify):
        assert verb() == Status.OTHER_VERSION
        says(capsys.readouterr().err, "install perfgate 0.1.0, which packed it")


# What somebody did to a pack before it is verified.


def flip_byte(path: str) -> None:
    with tarfile.open(PACK) as packed:
        entry = next(one for one in packed if one.name.endswith(path))
    content = bytearray(PACK.read_bytes())
    content[entry.offset_data + entry.size // 2] ^= 1
    PACK.write_bytes(content)


def rewrite(change: Callable[[bytes], bytes]) -> None:
    PACK.write_bytes(change(PACK.read_bytes()))


def rearchive(change: Change, *words: str) -> None:
    """Other files, and the manifest that it had."""
    files = files_of(PACK)
    change(files, *words)
    PACK.write_bytes(archive(sorted(files.items())))


def add_entry(name: str, kind: bytes = tarfile.REGTYPE) -> None:
    head = tarfile.TarInfo(name)
    head.type, head.linkname = kind, "/etc/passwd"
    PACK.write_bytes(archive([*files_of(PACK).items(), (head, b"")]))


def remake(change: Change, *words: Any) -> None:
    """Other files, a manifest that says so, and the signature that it had."""
    opened = open_pack(PACK)
    files = files_of(PACK)
    for name in (MANIFEST, ATTESTATION):
        files.pop(name, None)
    change(files, *words)
    roles = {one.path: one.role for one in opened.manifest.files}
    new = [Ingredient(path, roles.get(path, "log"), content) for path, content in files.items()]
    listed = tuple(sorted((one.listed() for one in new), key=lambda one: one.path))
    write_pack(PACK, structs.replace(opened.manifest, files=listed), new)
    with_attestation(open_pack(PACK), opened.attestation, PACK)


def sign_by_hand(changes: dict[str, object], key: Path = KEY, **fields: object) -> None:
    """A changed statement and predicate of this manifest, signed with a key."""
    opened = open_pack(PACK)
    stated = statement_of(PACK) | fields
    stated["predicate"] |= {"perfgate_manifest": {"sha256": opened.manifest_sha256}, **changes}
    with_attestation(opened, envelope(stated, [read_private_key(key)]), PACK)


def forge(change: Change, *words: Any) -> None:
    """A whole pack of other files, by somebody with the right key."""
    remake(change, *words)
    counts = statement_of(PACK)["predicate"]["perfgate_counts"]
    files = len(open_pack(PACK).manifest.files)
    sign_by_hand({"perfgate_counts": {**counts, "files": files}})


def sign_as_another() -> None:
    sign_by_hand({}, key_of_another())


def swap_subject() -> None:
    sign_by_hand({}, subject=[{"name": "stand-in", "digest": {"gitCommit": OTHER_COMMIT}}])


def take_the_signature_of_another_pack() -> None:
    before = PACK.read_bytes()
    remake(add, "waivers.yaml")
    sign_by_hand({})
    attestation = files_of(PACK)[ATTESTATION]
    PACK.write_bytes(before)
    with_attestation(open_pack(PACK), attestation, PACK)


# What somebody did to the files.


def add(files: Files, path: str) -> None:
    files[path] = b"x"


def replace(files: Files, path: str, old: str, new: str) -> None:
    assert old.encode() in files[path]
    files[path] = files[path].replace(old.encode(), new.encode())


def change_records(files: Files, change: Callable[[dict[str, Any]], object]) -> None:
    """With every checksum written again."""
    run = Path("forged")
    run.mkdir(exist_ok=True)
    for name in ("run.json", "records.jsonl"):
        (run / name).write_bytes(files[f"runs/run/{name}"])
    rerecord(run, change)
    files["runs/run/records.jsonl"] = (run / "records.jsonl").read_bytes()


def rest_on(files: Files, name: str, value: object) -> None:
    """Change what the verdict rests on; a test's, where a test has it."""

    def change(line: dict[str, Any]) -> None:
        if line["record"] == "verdict" and line["probe"] == "c1":
            given = line["judge_input"]
            (given["tests"][0] if name in given["tests"][0] else given)[name] = value

    change_records(files, change)


# Attack → what `verify` tells, what was done, with what.
REFUSED: dict[Status, dict[str, tuple[Any, ...]]] = {
    Status.BROKEN_PACK: {
        "byte of a result": ("c1/result.json", flip_byte, "c1/result.json"),
        "byte of the policy": (POLICY, flip_byte, POLICY),
        "byte of a scenario": ("standin.yaml", flip_byte, "standin.yaml"),
        "byte of the manifest": ("", flip_byte, MANIFEST),
        "extra file": ("a file is extra", rearchive, add, "runs/run/more.log"),
        "missing file": ("is missing", rearchive, dict.pop, RAW),
        "no manifest": ("missing", rearchive, dict.pop, MANIFEST),
        "file twice": ("in the pack twice", add_entry, RAW),
        "absolute name": ("an absolute path", add_entry, "/etc/passwd"),
        "name that leaves": ("leaves its folder", add_entry, "runs/../../x"),
        "symbolic link": ("a symbolic link", add_entry, "z", tarfile.SYMTYPE),
        "hard link": ("a hard link", add_entry, "z", tarfile.LNKTYPE),
        "device": ("a device", add_entry, "z", tarfile.CHRTYPE),
        "FIFO": ("a FIFO", add_entry, "z", tarfile.FIFOTYPE),
        "folder": ("a folder", add_entry, "z", tarfile.DIRTYPE),
        "sparse file": ("unknown kind", add_entry, "z", tarfile.GNUTYPE_SPARSE),
        "unknown kind": ("unknown kind", add_entry, "z", b"Z"),
        "cut": ("", rewrite, lambda pack: pack[: len(pack) // 2]),
        "end cut": ("", rewrite, lambda pack: pack.rstrip(b"\0")),
        "second archive": ("follows its last", rewrite, lambda pack: pack * 2),
        "compressed": ("uncompressed", rewrite, gzip.compress),
    },
    Status.SIGNATURE: {
        "unsigned": ("the pack is not signed", rearchive, dict.pop, ATTESTATION),
        "another release": ("the signed manifest is not this one", remake, dict.pop, RAW),
        "another signer": ("no signature of a known signer", sign_as_another),
        "signature of another pack": (
            "about release stand-in 1.0, manifest",
            take_the_signature_of_another_pack,
        ),
        "no time": ("not a statement", sign_by_hand, {"perfgate_signedAt": None}),
    },
    Status.NOT_REPRODUCED: {
        "flipped result": ('found: "WARNED"', sign_by_hand, {"result": "WARNED"}),
        "other tests": ("passedTests", sign_by_hand, {"passedTests": []}),
        "other configuration": ("configuration", sign_by_hand, {"configuration": []}),
        "other counts": ("perfgate_counts", sign_by_hand, {"perfgate_counts": []}),
        "more fields": ("more", sign_by_hand, {"more": 1}),
    },
    Status.CLOCK: {
        "time to come": ("", sign_by_hand, {"perfgate_signedAt": "2999-01-01T00:00:00Z"}),
        "time before": ("", sign_by_hand, {"perfgate_signedAt": "2020-01-01T00:00:00Z"}),
    },
    Status.OTHER_RELEASE: {
        "swapped subject": ("another artifact than the runs measured", swap_subject)
    },
    Status.OTHER_VERSION: {
        "another perfgate": (
            "install perfgate 0.0.9",
            *(rearchive, replace, MANIFEST, f'"perfgate": "{version("perfgate")}"'),
            '"perfgate": "0.0.9"',
        ),
        "another rule": (
            "rule",
            rearchive,
            replace,
            MANIFEST,
            f'"rule": "{RULE_VERSION}"',
            '"rule": "0"',
        ),
    },
}
# Of somebody with the right key, who made a whole pack; what `sign` refuses, too.
RECORDS, PAGES = "runs/run/records.jsonl", "certificate/certificate"
SCRIPT = "reproduce/standin-serve-c1.sh"
FORGED: dict[str, tuple[Any, ...]] = {
    "twice the throughput": ("do not give what the records say", change_records, twice_as_fast),
    "wider band": ("band", rest_on, "band", 0.9),
    "slower reference": ("references", rest_on, "references", [1.0, 1.0, 1.0]),
    "waiver": ("waivers", rest_on, "waivers", [{"metric": THROUGHPUT}]),
    "broken answers": ("broken", rest_on, "broken", "BROKEN_OUTPUT in sums"),
    "other day": ("today", rest_on, "today", "2020-01-01"),
    "record": ("checksum", replace, RECORDS, '"verdict": "PASS"', '"verdict": "FAST"'),
    "no raw file": ("", dict.pop, RAW),
    "certificate": ("certificate.md", replace, f"{PAGES}.md", "PASSED", "GOOD"),
    "page": ("certificate.html", replace, f"{PAGES}.html", "passed", "PASSED"),
    "check": ("check.json", replace, "certificate/check.json", "passed", "PASSED"),
    "no certificate": ("certificate.md", dict.pop, f"{PAGES}.md"),
    "report": ("report.html", replace, "report/report.html", "standin", "engine"),
    "report of programs": ("report.json", replace, "report/report.json", "PASS", "BEST"),
    "script": ("c1.sh", replace, SCRIPT, "exec", "evil; exec"),
    "one more script": ("reproduce/more.sh", add, "reproduce/more.sh"),
    "one more report": ("report/summary.html", add, "report/summary.html"),
    "one more run": ("runs/other/run.json", add, "runs/other/run.json"),
    "readme": ("README.md", add, "README.md"),
}


@each(("status", "name"), [(status, name) for status, rows in REFUSED.items() for name in rows])
def test_tampering_is_refused(made: Path, capsys: Capture, status: Status, name: str) -> None:
    told, tamper, *words = REFUSED[status][name]
    copy(made)
    tamper(*words)
    capsys.readouterr()
    assert verify() == status
    assert told in capsys.readouterr().err


@each("name", FORGED)
def test_what_the_runs_do_not_give_is_refused(made: Path, capsys: Capture, name: str) -> None:
    told, *change = FORGED[name]
    copy(made)
    forge(*change)
    for verb in (verify, sign):
        capsys.readouterr()
        assert verb() == Status.NOT_REPRODUCED
        assert told in capsys.readouterr().err


def test_who_is_not_named_by_the_policy_cannot_sign_nor_be_trusted(capsys: Capture) -> None:
    other = key_of_another()
    assert sign(key=other) == Status.SIGNATURE
    assert "Ada" in capsys.readouterr().err
    sign_by_hand({}, other)
    assert verify("--key", f"{other}.pub") == Status.SIGNATURE
    assert "not among those whom the pack's policy names" in capsys.readouterr().err


def test_an_older_pack_is_of_another_commit_or_policy(capsys: Capture) -> None:
    assert verify("--commit", OTHER_COMMIT) == Status.OTHER_RELEASE
    assert "the pack is of another build" in capsys.readouterr().err
    assert verify("--subject", f"engine.whl=sha256:{'d' * 64}") == Status.OTHER_RELEASE
    write_policy(release="stand-in 1.1")
    assert verify("--policy", str(RULES)) == Status.OTHER_RELEASE
    assert "held against another policy" in capsys.readouterr().err


def test_an_older_pack_has_expired(monkeypatch: Patch, capsys: Capture) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=30)

    monkeypatch.setattr(signature, "datetime", Later)
    assert verify("--commit", COMMIT) == Status.EXPIRED
    assert "stale" in capsys.readouterr().err
    at = datetime.now(UTC).isoformat()
    assert verify("--commit", COMMIT, "--at", at) == Status.PASSED
    assert "as --at states; not of today" in capsys.readouterr().out
    assert verify("--at", "2020-01-01T00:00:00+00:00") == Status.CLOCK


def test_keys_that_cannot_be_used(capsys: Capture) -> None:
    assert verify("--key", str(KEY)) == Status.KEY
    told = capsys.readouterr()
    assert KEY.read_text().splitlines()[1] not in told.out + told.err
    KEY.chmod(0o644)
    assert sign() == Status.KEY
    assert "chmod 600" in capsys.readouterr().err
    assert release("verify", str(PACK)) == 2
    assert "a pack cannot say itself whom to trust" in capsys.readouterr().err
    assert main(["release", "keygen", "--output", str(KEY)]) == 2


def test_a_release_that_failed_is_signed_as_that(made: Path, capsys: Capture) -> None:
    floor = {"test": "standin-serve-c1", "metric": THROUGHPUT, "limit": 1e9}
    slow = {"name": "serving", "tests": ["standin-serve-c1"], "floors": [floor]}
    write_policy(required=[slow])
    assert pack(made / "run") == sign() == 0
    assert "FAILED" in capsys.readouterr().out
    predicate = statement_of(PACK)["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == ("FAILED", ["standin-serve/c1"])
    assert verify() == Status.FAILED


def test_a_pack_is_compared_with_scenarios_of_ones_own(made: Path, capsys: Capture) -> None:
    unchecked = "which tests are required was not checked"
    assert verify() == Status.PASSED
    assert unchecked in capsys.readouterr().out
    shutil.copytree(made / "scenarios", "mine")
    assert verify("--scenarios", "mine") == Status.PASSED
    told = capsys.readouterr().out
    says(told, "as the given scenarios have it", "standin-serve-c1")
    assert unchecked not in told
    file = Path("mine/standin.yaml")
    text = file.read_text()
    for old, new in (("max_starts: 4", "max_starts: 6"), ("id: standin-serve", "id: another")):
        file.write_text(text.replace(old, new))
        assert verify("--scenarios", "mine") == Status.OTHER_RELEASE
        assert "the pack's scenarios are not the given ones" in capsys.readouterr().err
