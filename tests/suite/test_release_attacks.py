"""`perfgate release sign` and `verify` on a real session, and on everything that was attacked."""

import base64
import gzip
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkouts import Suite, copied
from made_packs import archive, files_of
from msgspec import structs
from registered_standins import registered_standins
from tables import each

from perfgate.cli import release_signature
from perfgate.cli.main import main
from perfgate.core.durable_files import append_line
from perfgate.release import verification
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
RAW = "runs/run/standin-serve/start-2-new/c1/result.json"
THROUGHPUT = "output_throughput"

Files = dict[str, bytes]
Change = Callable[[dict[str, Any]], object]


# All of it is in the working folder, and nothing else.
PACK, KEY, RULES = Path("signed.tar"), Path("release.key"), Path("release.yaml")


def verify(*options: str) -> int:
    words = ["release", "verify", str(PACK), "--import", "standin"]
    keys = () if "--policy" in options or "--key" in options else ("--key", f"{KEY}.pub")
    return main([*words, *keys, *options])


def sign(*options: str, key: Path = KEY) -> int:
    return main(["release", "sign", str(PACK), "--key", str(key), "--import", "standin", *options])


def pack(run: Path = Path("run")) -> int:
    words = ["release", "pack", str(RULES), str(run), "--import", "standin", "--yes"]
    return main([*words, "--output", str(PACK)])


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
    """Other files, a manifest that says so, and the signature that it had."""
    opened = open_pack(PACK)
    files = {**files_of(PACK)}
    for name in (MANIFEST, ATTESTATION):
        files.pop(name, None)
    change(files)
    roles = {one.path: one.role for one in opened.manifest.files}
    new = [Ingredient(path, roles.get(path, "log"), content) for path, content in files.items()]
    listed = tuple(sorted((one.listed() for one in new), key=lambda one: one.path))
    write_pack(PACK, structs.replace(opened.manifest, files=listed, **manifest), new)
    if opened.attestation is not None:
        with_attestation(open_pack(PACK), opened.attestation, PACK)


def sign_by_hand(change: Change | None = None, key: Path = KEY) -> None:
    """A statement of this manifest that somebody changed, signed with a key."""
    opened = open_pack(PACK)
    stated = statement_of(PACK)
    stated["predicate"]["perfgate_manifest"] = {"sha256": opened.manifest_sha256}
    if change:
        change(stated)
    with_attestation(opened, envelope(stated, [read_private_key(key)]), PACK)


def statement_of(pack: Path) -> dict[str, Any]:
    plain = json.loads(files_of(pack)[ATTESTATION])
    found: dict[str, Any] = json.loads(base64.b64decode(plain["payload"]))
    return found


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
        assert pack() == 0
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
    assert sign("--output", "again.tar") == 0
    first, second = (statement_of(one)["predicate"] for one in (PACK, Path("again.tar")))
    for one in (first, second):
        assert one.pop("perfgate_signedAt").endswith("+00:00")
    assert first == second
    assert sign("--output", "again.tar") == 2


def test_verification_is_the_same_whatever_the_machine_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports, certificates and scripts are rendered again from check and runs alone."""
    monkeypatch.setenv("HF_TOKEN", "standin-serve")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert verify() == sign("--output", "again.tar") == Status.PASSED
    assert "reports, certificates and scripts again, all as packed" in capsys.readouterr().out


def test_what_another_perfgate_rendered_is_not_signed_and_named_by_verify(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verification, "version", lambda _: "99.0")
    assert sign() == Status.OTHER_VERSION
    assert "or pack the runs again with this one" in capsys.readouterr().err
    assert verify() == Status.PASSED
    told = capsys.readouterr().out
    assert "not rendered again, as perfgate" in told
    assert "certificate/certificate.md" in told


# What somebody did to a pack, each before it is verified.


def byte_changed(path: str) -> Callable[[], None]:
    def change() -> None:
        with tarfile.open(PACK) as archive:
            entry = next(one for one in archive if one.name.endswith(path))
        with PACK.open("r+b") as file:
            file.seek(entry.offset_data + entry.size // 2)
            old = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([old[0] ^ 1]))

    return change


def archived(change: Callable[[Files], object]) -> Callable[[], None]:
    """Other files, and the manifest that it had."""

    def run() -> None:
        files = files_of(PACK)
        change(files)
        PACK.write_bytes(archive(sorted(files.items())))

    return run


def with_entry(name: str, kind: bytes = tarfile.REGTYPE) -> Callable[[], None]:
    """One more entry at the end."""

    def run() -> None:
        head = tarfile.TarInfo(name)
        head.type, head.linkname = kind, "/etc/passwd"
        PACK.write_bytes(archive([*files_of(PACK).items(), (head, b"")]))

    return run


def written(change: Callable[[bytes], bytes]) -> Callable[[], None]:
    return lambda: PACK.write_bytes(change(PACK.read_bytes())) and None


def remade(change: Callable[[Files], object], **manifest: Any) -> Callable[[], None]:
    return lambda: remake(change, **manifest)


def remade_and_signed(change: Callable[[Files], object], **manifest: Any) -> Callable[[], None]:
    """By somebody with the right key."""

    def run() -> None:
        remake(change, **manifest)
        sign_by_hand(lambda one: one["predicate"].update(counts()))

    return run


def counts() -> dict[str, Any]:
    """The number of files, as the manifest has it now."""
    before = statement_of(PACK)["predicate"]["perfgate_counts"]
    return {"perfgate_counts": {**before, "files": len(open_pack(PACK).manifest.files)}}


def stated(**fields: object) -> Callable[[], None]:
    """Another statement, signed with the right key."""
    return lambda: sign_by_hand(lambda one: one["predicate"].update(fields))


def swapped(one: dict[str, Any]) -> None:
    one["subject"] = [{"name": "stand-in", "digest": {"gitCommit": OTHER_COMMIT}}]


def added(path: str) -> Callable[[Files], object]:
    return lambda files: files.update({path: b"x"})


def more(files: Files) -> None:
    files["runs/run/more.log"] = b"x"


def replaced(path: str, old: str, new: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        assert old.encode() in files[path]
        files[path] = files[path].replace(old.encode(), new.encode())

    return change


def rerecorded(change: Change) -> Callable[[Files], None]:
    """A change to each record, with every checksum written anew."""

    def run(files: Files) -> None:
        lines = files["runs/run/records.jsonl"].decode().splitlines()
        base, records = Path("run.json"), Path("records.jsonl")
        base.write_bytes(files["runs/run/run.json"])
        records.unlink(missing_ok=True)
        for line in map(json.loads, lines):
            line.pop("checksum", None)
            change(line)
            append_line(records, line, base=base)
        files["runs/run/records.jsonl"] = records.read_bytes()

    return run


def faster(line: dict[str, Any]) -> None:
    if line["record"] == "measurement":
        line["metrics"][THROUGHPUT] *= 2


def rests_on(**fields: object) -> Change:
    """Another field of what the verdict rests on; a test's, where a test has it."""

    def change(line: dict[str, Any]) -> None:
        if line["record"] == "verdict" and line["probe"] == "c1":
            given = line["judge_input"]
            test = given["tests"][0]
            for name, value in fields.items():
                (test if name in test else given)[name] = value

    return change


def with_that_of_another_pack() -> None:
    before = PACK.read_bytes()
    remake(lambda files: files.update({"waivers.yaml": b"waivers: []\n"}))
    sign_by_hand()
    attestation = files_of(PACK)[ATTESTATION]
    PACK.write_bytes(before)
    with_attestation(open_pack(PACK), attestation, PACK)


def unsigned() -> None:
    archived(lambda files: files.pop(ATTESTATION))()


REFUSED: dict[str, tuple[Callable[[], object], Status, str]] = {
    "byte of a result": (byte_changed("c1/result.json"), Status.BROKEN_PACK, "c1/result.json"),
    "byte of the policy": (byte_changed(POLICY), Status.BROKEN_PACK, POLICY),
    "byte of a scenario": (byte_changed("standin.yaml"), Status.BROKEN_PACK, "standin.yaml"),
    "byte of the manifest": (byte_changed(MANIFEST), Status.BROKEN_PACK, ""),
    "extra file": (archived(more), Status.BROKEN_PACK, "a file is extra"),
    "missing file": (archived(lambda files: files.pop(RAW)), Status.BROKEN_PACK, "is missing"),
    "no manifest": (archived(lambda files: files.pop(MANIFEST)), Status.BROKEN_PACK, "missing"),
    "file twice": (with_entry(RAW), Status.BROKEN_PACK, "in the pack twice"),
    "absolute name": (with_entry("/etc/passwd"), Status.BROKEN_PACK, "an absolute path"),
    "name that leaves": (with_entry("runs/../../x"), Status.BROKEN_PACK, "leaves its folder"),
    "symbolic link": (with_entry("z", tarfile.SYMTYPE), Status.BROKEN_PACK, "a symbolic link"),
    "hard link": (with_entry("z", tarfile.LNKTYPE), Status.BROKEN_PACK, "a hard link"),
    "device": (with_entry("z", tarfile.CHRTYPE), Status.BROKEN_PACK, "a device"),
    "FIFO": (with_entry("z", tarfile.FIFOTYPE), Status.BROKEN_PACK, "a FIFO"),
    "folder": (with_entry("z", tarfile.DIRTYPE), Status.BROKEN_PACK, "a folder"),
    "sparse file": (with_entry("z", tarfile.GNUTYPE_SPARSE), Status.BROKEN_PACK, "unknown kind"),
    "unknown kind": (with_entry("z", b"Z"), Status.BROKEN_PACK, "unknown kind"),
    "cut": (written(lambda pack: pack[: len(pack) // 2]), Status.BROKEN_PACK, ""),
    "end cut": (written(lambda pack: pack.rstrip(b"\0")), Status.BROKEN_PACK, ""),
    "second archive": (written(lambda pack: pack * 2), Status.BROKEN_PACK, "follows its last"),
    "compressed": (written(gzip.compress), Status.BROKEN_PACK, "uncompressed"),
    "unsigned": (unsigned, Status.SIGNATURE, "the pack is not signed"),
    "another release": (
        remade(lambda files: files.pop(RAW)),
        Status.SIGNATURE,
        "the signed manifest is not this one",
    ),
    "another signer": (
        lambda: sign_by_hand(key=key_of_another()),
        Status.SIGNATURE,
        "no signature of a known signer",
    ),
    "signature of another pack": (
        with_that_of_another_pack,
        Status.SIGNATURE,
        "about release stand-in 1.0, manifest",
    ),
    "flipped result": (stated(result="WARNED"), Status.NOT_REPRODUCED, 'found: "WARNED"'),
    "other tests": (stated(passedTests=[]), Status.NOT_REPRODUCED, "passedTests"),
    "other configuration": (stated(configuration=[]), Status.NOT_REPRODUCED, "configuration"),
    "other counts": (stated(perfgate_counts=[]), Status.NOT_REPRODUCED, "perfgate_counts"),
    "more fields": (stated(more=1), Status.NOT_REPRODUCED, "more"),
    "no time": (stated(perfgate_signedAt=None), Status.SIGNATURE, "not a statement"),
    "time to come": (stated(perfgate_signedAt="2999-01-01T00:00:00Z"), Status.CLOCK, ""),
    "time before": (stated(perfgate_signedAt="2020-01-01T00:00:00Z"), Status.CLOCK, ""),
    "swapped subject": (
        lambda: sign_by_hand(swapped),
        Status.OTHER_RELEASE,
        "another artifact than the runs measured",
    ),
    "another rule": (
        remade_and_signed(lambda _: None, rule="2", perfgate="0.0.9"),
        Status.OTHER_VERSION,
        "use perfgate 0.0.9",
    ),
}
# Of somebody with the right key, who made a whole pack; what `sign` refuses, too.
FORGED: dict[str, tuple[Callable[[Files], object], str]] = {
    "twice the throughput": (rerecorded(faster), "do not give what the records say"),
    "wider band": (rerecorded(rests_on(band=0.9)), "band"),
    "slower reference": (rerecorded(rests_on(references=[1.0, 1.0, 1.0])), "references"),
    "waiver": (rerecorded(rests_on(waivers=[{"metric": THROUGHPUT}])), "waivers"),
    "broken answers": (rerecorded(rests_on(broken="BROKEN_OUTPUT in sums")), "broken"),
    "other day": (rerecorded(rests_on(today="2020-01-01")), "today"),
    "record": (
        replaced("runs/run/records.jsonl", '"verdict": "PASS"', '"verdict": "FAST"'),
        "checksum",
    ),
    "no raw file": (lambda files: files.pop(RAW), ""),
    "certificate": (replaced("certificate/certificate.md", "PASSED", "GOOD"), "certificate.md"),
    "page": (replaced("certificate/certificate.html", "passed", "PASSED"), "certificate.html"),
    "check": (replaced("certificate/check.json", "passed", "PASSED"), "check.json"),
    "no certificate": (lambda files: files.pop("certificate/certificate.md"), "certificate.md"),
    "report": (replaced("report/report.html", "standin", "engine"), "report.html"),
    "report of programs": (replaced("report/report.json", "PASS", "BEST"), "report.json"),
    "script": (replaced("reproduce/standin-serve-c1.sh", "exec", "evil; exec"), "c1.sh"),
    "one more script": (added("reproduce/more.sh"), "reproduce/more.sh"),
    "one more report": (added("report/summary.html"), "report/summary.html"),
    "one more run": (added("runs/other/run.json"), "runs/other/run.json"),
    "readme": (added("README.md"), "README.md"),
}


@each("name", REFUSED)
def test_what_was_tampered_with_is_refused(
    made: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    tamper, status, told = REFUSED[name]
    copy(made)
    tamper()
    capsys.readouterr()
    assert verify() == status
    assert told in capsys.readouterr().err


@each("name", FORGED)
def test_what_the_runs_do_not_give_is_neither_signed_nor_verified(
    made: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    forge, told = FORGED[name]
    copy(made)
    remade_and_signed(forge)()
    for verb in (verify, sign):
        capsys.readouterr()
        assert verb() == Status.NOT_REPRODUCED
        assert told in capsys.readouterr().err


def test_who_is_not_named_by_the_policy_cannot_sign_nor_be_trusted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = key_of_another()
    assert sign(key=other) == Status.SIGNATURE
    assert "Ada" in capsys.readouterr().err
    sign_by_hand(key=other)
    assert verify("--key", f"{other}.pub") == Status.SIGNATURE
    assert "not among those whom the pack's policy names" in capsys.readouterr().err


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
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=30)

    monkeypatch.setattr(release_signature, "datetime", Later)
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


def test_a_release_that_failed_is_signed_as_that(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    floor = {"test": "standin-serve-c1", "metric": THROUGHPUT, "limit": 1e9}
    slow = {"name": "serving", "tests": ["standin-serve-c1"], "floors": [floor]}
    write_policy(required=[slow])
    assert pack(made / "run") == 0
    assert sign() == 0
    assert "FAILED" in capsys.readouterr().out
    predicate = statement_of(PACK)["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == ("FAILED", ["standin-serve/c1"])
    assert verify() == Status.FAILED


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
