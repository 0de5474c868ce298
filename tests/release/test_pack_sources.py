"""What of a run's folder goes into a pack, as what, and what is refused by name."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import releases

from perfgate.core.errors import InputError
from perfgate.release.pack_contents import run_files
from perfgate.runs.ended_run import EndedRun

FILES = {
    "run.json": "run",
    "records.jsonl": "records",
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
    "run.lock",
    "summary.md",
    "small/start-1-new/.cache/model/link",
    "small/start-1-new/__pycache__/a.cpython-311.pyc",
    "small/start-1-new/server.evidence.txt",
)


@pytest.fixture
def run(tmp_path: Path) -> EndedRun:
    for name in (*FILES, *LEFT_OUT):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    link = tmp_path / "small/start-1-new/.cache/model/link"
    link.unlink()
    link.symlink_to("/etc/passwd")
    return replace(releases.run("one"), folder=tmp_path)


def test_every_file_has_its_role_and_what_is_left_out_is_told(run: EndedRun) -> None:
    found = run_files(run)
    assert {one.path: one.role for one in found.packed} == {
        f"runs/one/{name}": role for name, role in FILES.items()
    }
    assert {path for path, _ in found.left_out} == {f"runs/one/{name}" for name in LEFT_OUT}
    assert dict(found.left_out)["runs/one/core.4711"] == len("core.4711")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket has 107 bytes at most
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


NO_UNICODE = os.fsdecode(b"a\xff")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("small/linked.log", lambda path: path.symlink_to("/etc/passwd")),
        ("linked", lambda path: path.symlink_to(path.parent / "small")),
        ("pipe", os.mkfifo),
        ("socket", listening),
        ("a\nb", Path.touch),
        (NO_UNICODE, Path.touch),
    ],
    ids=["link", "link to a folder", "FIFO", "socket", "control character", "no Unicode"],
)
def test_what_is_no_regular_file_of_a_usual_name_is_refused_by_name(
    run: EndedRun, name: str, make: Callable[[Path], object]
) -> None:
    path = run.folder / name
    make(path)
    with pytest.raises(InputError) as caught:
        run_files(run)
    assert caught.value.file == path
    assert "fix:" in str(caught.value)
