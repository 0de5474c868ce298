"""A pack of runs: the same bytes of the same input, and nothing in it that should not be."""

import datetime
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_packs
import pytest
import releases
from made_runs import write_run
from msgspec import structs
from plain_records import record

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.release import certificate
from perfgate.release.pack_archive import open_pack, write_pack
from perfgate.release.pack_contents import Contents, contents, newest_end
from perfgate.release.pack_manifest import CERTIFICATE, CHECK_JSON, POLICY
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun, read_run

TOKEN = "hf_" + "QwErTy12" * 4 + "Ab"
END_AT = "2026-11-23T09:00:00+00:00"
RAW = {
    "small/start-1-new/server.out": "ready\n",
    "small/start-1-new/c1/client.sh": "#!/bin/sh\n",
    "small/start-1-new/c1/result.json": "{}\n",
    "references/small.json": "{}\n",
}


def ended(run: EndedRun, at: str = END_AT) -> EndedRun:
    """The run with times and hashes of content as a session writes them."""
    records = [structs.replace(one, at=at) for one in run.records]
    content = {one.label: one.content_hash() for one in probes()}
    group = record("group", at=at, scenario="small", content=content)
    return replace(run, records=[*records[:-1], group, records[-1]])


def probes() -> Any:
    from perfgate.scenarios.probe import all_probes

    return all_probes(releases.SCENARIO)


def written(folder: Path, run: EndedRun) -> EndedRun:
    """The run in a folder, with raw files, read again."""
    write_run(folder / run.id, run)
    for name, text in RAW.items():
        file = folder / run.id / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
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


def packed(output: Path, found: Contents) -> bytes:
    write_pack(output, found.manifest, found.ingredients)
    return output.read_bytes()


@pytest.fixture
def run(tmp_path: Path) -> EndedRun:
    return written(tmp_path / "a", ended(releases.run()))


def test_it_holds_each_part_in_its_role(places: Path, run: EndedRun, tmp_path: Path) -> None:
    packed(tmp_path / "p.tar", made(places, run))
    pack = open_pack(tmp_path / "p.tar")
    files = made_packs.files_of(tmp_path / "p.tar")
    roles = {one.path: one.role for one in pack.manifest.files}
    assert (
        roles.items()
        >= {
            POLICY: "policy",
            "waivers.yaml": "waivers",
            "scenarios/1/small.yaml": "scenarios",
            "runs/one/run.json": "run",
            "runs/one/records.jsonl": "records",
            "runs/one/references/small.json": "baseline",
            "runs/one/small/start-1-new/c1/result.json": "raw",
            "report/report.html": "report",
            "report/report.json": "report",
            CHECK_JSON: "certificate",
            CERTIFICATE: "certificate",
            "reproduce/small-c1.sh": "reproduce",
        }.items()
    )
    manifest = pack.manifest
    assert (manifest.release, manifest.ended, manifest.runs) == ("small 1.3.0", END_AT, ("one",))
    assert json.loads(files[CHECK_JSON])["result"] == "PASSED"
    text = files[CERTIFICATE].decode()
    assert text.startswith("# ● PASSED")
    assert certificate.root_of(one for one in pack.manifest.files if one.role == "raw") in text


def test_its_bytes_are_those_of_its_input_alone(
    places: Path, run: EndedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = {releases.C4: "budget", releases.SUMS: "budget"}
    second = written(tmp_path / "a", ended(releases.run("two", "08:30", results=results)))
    first = replace(run)
    one = packed(tmp_path / "p.tar", made(places, first, second))
    shutil.copytree(tmp_path / "a", tmp_path / "other" / "folder of runs")
    moved = [read_run(tmp_path / "other" / "folder of runs" / name) for name in ("two", "one")]
    (tmp_path / "other" / "s").symlink_to(places)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    two = packed(tmp_path / "other" / "q.tar", made(tmp_path / "other" / "s", *moved))
    assert one == two
    assert str(tmp_path).encode() not in one


def test_a_test_measured_twice_leaves_a_report_of_each_run(
    places: Path, run: EndedRun, tmp_path: Path
) -> None:
    second = written(tmp_path / "a", ended(releases.run("two", "08:30")))
    found = made(places, run, second)
    paths = [one.path for one in found.manifest.files if one.path.startswith("report/")]
    assert paths == [*("report/one.html", "report/one.json", "report/two.html", "report/two.json")]


PLACES = [*RAW, "progress.jsonl", "small/start-1-new/server.err"]


def test_every_file_with_a_secret_is_refused_by_file_and_line(places: Path, run: EndedRun) -> None:
    text = f"first\n\n{TOKEN}\n"
    for file in (places / "small.yaml", *(run.folder / name for name in PLACES)):
        file.write_text(text)
    with pytest.raises(SeveralInputErrors) as caught:
        made(places, run, policy=text.encode(), waivers=text.encode())
    written_by_hand = ("policy/release.yaml", "waivers.yaml", "scenarios/1/small.yaml")
    assert {(str(one.file), one.line) for one in caught.value.errors} == {
        (str(file), 3) for file in (*written_by_hand, *(run.folder / name for name in PLACES))
    }
    assert TOKEN not in str(caught.value)


def test_what_only_stands_behind_the_name_of_a_secret_is_told_and_packed(
    places: Path, run: EndedRun
) -> None:
    told = ["think_end_token='</think>'", "HF_TOKEN=abcdefgh", "my token: the first word"]
    (run.folder / PLACES[0]).write_text("\n".join(["first", *told]) + "\n")
    assert made(places, run).named == (f"runs/{run.id}/{PLACES[0]}:2",)


def test_a_scenario_that_changed_since_is_refused(places: Path, run: EndedRun) -> None:
    changed = replace(
        releases.SCENARIO, hardware=replace(releases.SCENARIO.hardware, gpu="B200", gpus=8)
    )
    with pytest.raises(ReleaseRefused, match="changed since it was measured") as caught:
        made(places, run, scenarios=[changed])
    assert caught.value.status == ReleaseStatus.INCOMPLETE
    assert "small, c1: " in str(caught.value)


def test_a_run_that_did_not_end_is_refused(places: Path, tmp_path: Path) -> None:
    killed = written(tmp_path / "a", releases.run(end=None))
    with pytest.raises(ReleaseRefused, match="did not end") as caught:
        newest_end([killed])
    assert caught.value.status == ReleaseStatus.INCOMPLETE


def test_the_newest_end_is_that_of_the_last_run_to_end() -> None:
    runs = [ended(releases.run(), "2026-11-23T09:00:00+00:00")]
    runs.append(ended(releases.run("two", "07:00"), "2026-11-23T12:00:00+02:00"))
    assert newest_end(runs) == datetime.datetime(2026, 11, 23, 10, tzinfo=datetime.UTC)


@pytest.mark.parametrize("at", ["noon", "2026-11-23T09:00:00"])
def test_an_end_without_a_time_or_its_zone_is_refused(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with pytest.raises(InputError, match=r"records\.jsonl: ended\.at: not a time"):
        newest_end([ended(releases.run(), at)])


def test_names_that_are_one_on_some_systems_are_refused(places: Path, run: EndedRun) -> None:
    (run.folder / "Ready.md").write_text("")
    (run.folder / "ready.md").write_text("")
    with pytest.raises(InputError, match="one on some systems"):
        made(places, run)


def test_ids_that_leave_their_folder_are_refused(places: Path, run: EndedRun) -> None:
    for name in ("../../up", "/etc", "a\nb"):
        renamed = replace(run, facts={**run.facts, "id": name})
        with pytest.raises(InputError, match=r"a file (has|would have) a"):
            made(places, renamed)


def test_a_manifest_that_nobody_could_read_is_not_written(
    places: Path, run: EndedRun, tmp_path: Path
) -> None:
    found = made(places, run)
    with pytest.raises(ReleaseRefused, match="not as perfgate writes it"):
        write_pack(
            tmp_path / "p.tar",
            structs.replace(found.manifest, release="a\x1b[2J"),
            found.ingredients,
        )
    assert not (tmp_path / "p.tar").exists()


def test_a_file_that_changes_while_it_is_packed_is_refused(
    places: Path, run: EndedRun, tmp_path: Path
) -> None:
    found = made(places, run)
    (run.folder / "small/start-1-new/server.out").write_text("ready\nmore\n")
    with pytest.raises(InputError, match="changed while it was packed"):
        write_pack(tmp_path / "p.tar", found.manifest, found.ingredients)
    assert not (tmp_path / "p.tar").exists()
    assert not [*tmp_path.glob(".p.tar*")]
