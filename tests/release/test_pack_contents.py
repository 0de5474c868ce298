"""A pack of runs: each file in its role, the same bytes of the same input, nothing that leaks."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import made_packs
import pytest
import releases
from made_runs import write_run
from msgspec import structs
from plain_records import record
from refusals import refused

from perfgate.core.errors import SeveralInputErrors
from perfgate.release.certificate import root_of
from perfgate.release.pack_archive import CERTIFICATE, CHECK_JSON, POLICY, open_pack, write_pack
from perfgate.release.pack_contents import Contents, contents, newest_end
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.scenarios.probe import all_probes

TOKEN = "hf_" + "QwErTy12" * 4 + "Ab"
END_AT = "2026-11-23T09:00:00+00:00"
FILES = {
    "progress.jsonl": "log",
    "small/start-1-new/server.sh": "script",
    "small/start-1-new/server.out": "log",
    "small/start-1-new/server.err": "log",
    "small/start-1-new/c1/client.out": "raw",
    "small/start-1-new/c1/client.err": "log",
    "small/start-1-new/c1/result.json": "raw",
    "references/baselines/small.json": "baseline",
    "references/noise.json": "noise",
}
LEFT_OUT = (
    "core.4711",
    "summary.md",
    "small/start-1-new/__pycache__/a.cpython-311.pyc",
    "small/start-1-new/server.evidence.txt",
)
LINK = "small/start-1-new/.cache/model/link"
RENDERED = {
    "report/report.html": "report",
    "report/report.json": "report",
    CHECK_JSON: "certificate",
    CERTIFICATE: "certificate",
    "certificate/certificate.html": "certificate",
    **{f"reproduce/small-{one}.sh": "reproduce" for one in ("c1", "c4", "sums")},
}


def ended(run: EndedRun, at: str = END_AT) -> EndedRun:
    """The run with times and hashes of content as a session writes them."""
    records = [structs.replace(one, at=at) for one in run.records]
    content = {one.label: one.content_hash() for one in all_probes(releases.SCENARIO)}
    group = record("group", at=at, scenario="small", content=content)
    return replace(run, records=[*records[:-1], group, records[-1]])


def written(folder: Path, run: EndedRun) -> EndedRun:
    """The run in a folder, with raw files, read again."""
    write_run(folder / run.id, run)
    for name in (*FILES, *LEFT_OUT, LINK):
        file = folder / run.id / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to("/etc/passwd") if name == LINK else file.write_text(name)
    return read_run(folder / run.id)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "small.yaml").write_text("scenarios: []\n")
    return folder


def made(places: Path, *runs: EndedRun, **changes: Any) -> Contents:
    """What goes into a pack of these runs."""
    given = {
        "scenarios": [releases.SCENARIO],
        "policy": b"release: small\n",
        "waivers": b"waivers: []\n",
        "places": (places,),
        **changes,
    }
    return contents(releases.checked(*runs, at=newest_end(runs)), runs, **given)


@pytest.fixture
def run(tmp_path: Path) -> EndedRun:
    return written(tmp_path / "a", ended(releases.run()))


def test_it_holds_each_file_in_its_role(places: Path, run: EndedRun, tmp_path: Path) -> None:
    found = made(places, run)
    write_pack(tmp_path / "p.tar", found.manifest, found.ingredients)
    manifest = open_pack(tmp_path / "p.tar").manifest
    files = made_packs.files_of(tmp_path / "p.tar")
    assert {one.path: one.role for one in manifest.files} == {
        POLICY: "policy",
        "waivers.yaml": "waivers",
        "scenarios/1/small.yaml": "scenarios",
        "runs/one/run.json": "run",
        "runs/one/records.jsonl": "records",
        **{f"runs/one/{name}": role for name, role in FILES.items()},
        **RENDERED,
    }
    left_out = dict(found.left_out)
    locks = {path for path in left_out if path.endswith(".lock")}
    assert left_out.keys() - locks == {f"runs/one/{name}" for name in (*LEFT_OUT, LINK)}
    assert left_out["runs/one/core.4711"] == len("core.4711")
    assert (manifest.release, manifest.ended, manifest.runs) == ("small 1.3.0", END_AT, ("one",))
    assert json.loads(files[CHECK_JSON])["result"] == "PASSED"
    text = files[CERTIFICATE].decode()
    assert text.startswith("# ● PASSED")
    assert root_of(one for one in manifest.files if one.role == "raw") in text


def test_a_test_measured_twice_leaves_a_report_of_each_run(places, run, tmp_path) -> None:
    second = written(tmp_path / "a", ended(releases.run("two", "08:30")))
    found = made(places, run, second).manifest
    names = {f"report/{name}.{kind}" for name in ("one", "two") for kind in ("html", "json")}
    assert {one.path for one in found.files if one.path.startswith("report/")} == names
    assert made(places, second, run).manifest == found  # whatever the order


def test_every_file_with_a_secret_is_refused_by_file_and_line(places: Path, run: EndedRun) -> None:
    text = f"first\n\n{TOKEN}\n"
    of_run = [run.folder / name for name in FILES]
    for file in (places / "small.yaml", *of_run):
        file.write_text(text)
    of_hand = {"policy": text.encode(), "waivers": text.encode()}
    told = refused(made, places, run, **of_hand, error=SeveralInputErrors)
    named = {POLICY, "waivers.yaml", "scenarios/1/small.yaml", *map(str, of_run)}
    assert {(str(one.file), one.line) for one in told.errors} == {(x, 3) for x in named}
    assert TOKEN not in str(told)


def test_what_only_stands_behind_the_name_of_a_secret_is_told_and_packed(places, run) -> None:
    (run.folder / "progress.jsonl").write_text("first\nHF_TOKEN=abcdefgh\nmy token: a word\n")
    assert made(places, run).named == (f"runs/{run.id}/progress.jsonl:2",)


def test_a_scenario_that_changed_since_is_refused(places: Path, run: EndedRun) -> None:
    hardware = replace(releases.SCENARIO.hardware, gpu="B200", gpus=8)
    other, why = replace(releases.SCENARIO, hardware=hardware), "another one than the run measured"
    error = refused(made, places, run, scenarios=[other], match=why)
    assert error.status == ReleaseStatus.INCOMPLETE
    assert "small, c1: " in str(error)


def test_the_newest_end_is_that_of_the_last_run_to_end() -> None:
    runs = [ended(releases.run(), END_AT)]
    runs.append(ended(releases.run("two", "07:00"), "2026-11-23T12:00:00+02:00"))
    assert newest_end(runs) == datetime(2026, 11, 23, 10, tzinfo=UTC)
    error = refused(newest_end, [releases.run(end=None)], match="did not end")
    assert error.status == ReleaseStatus.INCOMPLETE
    for at in ("noon", "2026-11-23T09:00:00"):
        why = r"records\.jsonl: ended\.at: not a time"
        refused(newest_end, [ended(releases.run(), at)], match=why)


def test_what_is_no_regular_file_of_a_usual_name_is_refused_by_name(places, run) -> None:
    for name, make in (
        ("small/linked.log", lambda path: path.symlink_to("/etc/passwd")),
        ("linked", lambda path: path.symlink_to(path.parent / "small")),
        ("pipe", os.mkfifo),
        ("a\nb", Path.touch),
        (os.fsdecode(b"a\xff"), Path.touch),
    ):
        make(run.folder / name)
        error = refused(made, places, run, match="fix:")
        assert error.file == run.folder / name
        (run.folder / name).unlink()


def test_names_that_leave_their_folder_or_are_one_on_some_systems_are_refused(places, run) -> None:
    for name in ("../../up", "/etc", "a\nb"):
        renamed = replace(run, facts={**run.facts, "id": name})
        refused(made, places, renamed, match="a file has a")
    for name in ("Ready.md", "ready.md"):
        (run.folder / name).write_text("")
    refused(made, places, run, match="one on some systems")


def test_what_nobody_could_read_or_changes_meanwhile_is_not_written(places, run, tmp_path) -> None:
    found, output = made(places, run), tmp_path / "p.tar"
    strange = structs.replace(found.manifest, release="a\x1b[2J")
    error = refused(write_pack, output, strange, found.ingredients, error=ReleaseRefused)
    assert "not as perfgate writes it" in str(error)
    for text in ("more than it had", "less"):
        (run.folder / "progress.jsonl").write_text(text)
        why = "changed while it was packed"
        refused(write_pack, output, found.manifest, found.ingredients, match=why)
    assert not [*tmp_path.glob("*p.tar*")]
