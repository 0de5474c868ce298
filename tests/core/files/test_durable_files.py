"""Files that are whole or as before, lines that are whole, and folders that are kept whole."""

import errno
import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_cut import Disk
from refusals import refused
from tables import each

from perfgate.core.errors import InputError, RunError
from perfgate.core.files import durable_files
from perfgate.core.files.durable_files import (
    CHECKSUMS,
    append_line,
    kept_folder,
    read_json,
    read_lines,
    write_json,
    write_text,
)

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)

APPEND = """
import sys
from pathlib import Path
from perfgate.core.files.durable_files import append_line
for number in range(int(sys.argv[3])):
    append_line(Path(sys.argv[1]), {"who": sys.argv[2], "n": number, "text": "é×" * 5000})
"""


def appender(path: Path, who: str, lines: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", APPEND, str(path), who, str(lines)])


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Disk(tmp_path, monkeypatch) as disk:
        yield disk


# Writing


@each("umask", [0o022, 0o077])
def test_the_umask_says_who_may_read(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_text(tmp_path / "folder" / "file.txt", "one")
        append_line(tmp_path / "folder" / "lines.jsonl", {"a": 1})
    finally:
        os.umask(before)
    files = {one: one.stat().st_mode & 0o777 for one in (tmp_path / "folder").iterdir()}
    assert set(files.values()) == {0o666 & ~umask}
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o777 & ~umask


REFUSAL = OSError(errno.EIO, "Input/output error")


@each("step, error", [("fsync", REFUSAL), ("replace", REFUSAL), ("fsync", KeyboardInterrupt())])
def test_a_failure_leaves_the_old_content(tmp_path, monkeypatch, step, error) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")
    monkeypatch.setattr(os, step, Mock(side_effect=error))
    refused(write_text, path, "new", error=(RunError, KeyboardInterrupt))
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["file.txt"]


FULL = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "disk_full")


@each("number", [*FULL, errno.EROFS, errno.EIO])
def test_what_keeps_it_from_being_written_is_told(tmp_path, monkeypatch, number: int) -> None:
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(number, os.strerror(number))))
    for write in (write_text, append_line):
        path = tmp_path / write.__name__
        caught = refused(write, path, "new" if write is write_text else {"a": 1}, error=RunError)
        assert caught.failure == FULL.get(number, "unwritable")
        assert caught.message == f"cannot write {path}: {os.strerror(number)}"
        assert durable_files.is_unwritable(caught)
    assert (tmp_path / "append_line").read_bytes() == b""


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch) -> None:
    refusal = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=refusal))
    with pytest.raises(RunError, match=r"cannot write .*lines\.jsonl: No locks available"):
        append_line(tmp_path / "lines.jsonl", {"a": 1})
    assert read_lines(tmp_path / "lines.jsonl") == []


def test_json_is_sorted_one_key_a_line_and_knows_no_infinity(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": ["×", os.fsdecode(b"\xff")]})  # no text
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n "a": [\n  "×",\n  "\\udcff"\n ],\n "b": 1\n}\n'
    for write in (write_json, append_line):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(tmp_path / "b.json", {"a": float("inf")})
    assert not (tmp_path / "b.json").exists()


# Appending


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    writers = [appender(path, who, 20) for who in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    lines = read_lines(path)
    for who in "abc":
        assert [line["n"] for line in lines if line["who"] == who] == list(range(20))
    assert {line["text"] for line in lines} == {"é×" * 5000}


def test_a_killed_writer_costs_at_most_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    writer = appender(path, "killed", 10**9)
    while len(read_lines(path)) < 20:
        assert writer.poll() is None
        time.sleep(0.005)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    before = read_lines(path)
    assert [line["n"] for line in before] == list(range(len(before)))
    append_line(path, {"who": "next"})
    assert read_lines(path) == [*before, {"who": "next"}]


@each("rest", [b'{"a": "\xc3', *(b"x" * size for size in (1, 65535, 65536, 65537, 200_000))])
def test_a_cut_last_line_is_replaced(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    for before in ([], [{"a": "whole"}]):
        for one in before:
            append_line(path, one)
        with path.open("ab") as file:
            file.write(rest)
        assert read_lines(path) == before
        append_line(path, {"a": "next"})
        assert read_lines(path) == [*before, {"a": "next"}]
        path.unlink()


def test_no_room_for_a_line_undoes_what_was_written_of_it(tmp_path: Path) -> None:
    path, (soft, hard) = tmp_path / "lines.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    append_line(path, {"a": "x" * 60_000})
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    try:
        refused(append_line, path, {"a": "y" * 50_000}, match="File too large", error=RunError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes().endswith(b'x"}\n')
    append_line(path, {"a": "short"})
    assert [line["a"][:5] for line in read_lines(path)] == ["xxxxx", "short"]


# After a power cut at any moment there is the old content or the new; at last the new.


@pytest.mark.parametrize(("name", "old"), [("file.txt", b"old"), ("a/b/file.txt", None)])
def test_a_power_cut_leaves_the_old_file_or_the_new(tmp_path, disk, name, old) -> None:
    path = tmp_path / name
    if old is not None:
        write_text(path, old.decode())
        disk.settle()
    disk.watch(path)
    write_text(path, "new")
    assert disk.seen(path) == {old, b"new"}
    assert disk.possible(path) == {b"new"}


def test_a_power_cut_leaves_whole_lines(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "lines.jsonl"
    disk.watch(path)
    append_line(path, {"b": "two\nlines", "a": 1})
    assert disk.possible(path) == {b'{"a": 1, "b": "two\\nlines"}\n'}
    append_line(path, {"a": 2})
    assert disk.possible(path) == {b'{"a": 1, "b": "two\\nlines"}\n{"a": 2}\n'}
    found = []
    for content in disk.seen(path) - {None}:
        (tmp_path / "left.jsonl").write_bytes(content or b"")
        found.append([line["a"] for line in read_lines(tmp_path / "left.jsonl")])
    assert sorted(found) == [[], [], [1], [1], [1, 2]]


@each("call", ["fsync", "open"])
def test_a_folder_that_cannot_be_synced_or_read_will_do(tmp_path, monkeypatch, call):
    real = getattr(os, call)

    def refuse(what, *more):
        if more[0] & os.O_DIRECTORY if more else stat.S_ISDIR(os.fstat(what).st_mode):
            raise PermissionError if more else OSError(errno.EINVAL, "Invalid argument")
        return real(what, *more)

    with monkeypatch.context() as here:
        here.setattr(os, call, refuse)
        write_text(tmp_path / "a" / "file.txt", "new")
        append_line(tmp_path / "lines.jsonl", {"a": 1})
    assert (tmp_path / "a" / "file.txt").read_text() == "new"


# Reading


@settings(max_examples=25)
@given(value=JSON)
def test_reads_back_what_was_written(value: object) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_json(folder / "a.json", value)
        assert read_json(folder / "a.json", what="thing") == value
        append_line(folder / "a.jsonl", {"value": value})
        assert read_lines(folder / "a.jsonl") == [{"value": value}]


@each(
    ("content", "problem"),
    [
        (b'{\n "a": 1,\n}', r"a\.json:3: thing is not JSON\n  found: Expecting property"),
        (b'{"a": NaN}', "thing is not JSON\n  found: not a finite number: NaN"),
    ],
)
def test_tells_what_is_wrong_and_where(tmp_path, content: bytes, problem: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    caught = refused(read_json, path, what="thing", hint="write it again", match=problem)
    assert str(caught).endswith("fix: write it again")


def test_tells_a_missing_file_from_an_unreadable_one(tmp_path: Path) -> None:
    refused(read_json, tmp_path / "a.json", what="thing", match="no such thing")
    with pytest.raises(InputError, match="thing cannot be read\n  found: Is a directory"):
        read_json(tmp_path, what="thing")
    assert read_lines(tmp_path / "lines.jsonl") == []


@each(
    ("line", "problem"),
    [
        (b'{"a"', r"lines\.jsonl:2: not JSON"),
        (b"[1]", r"lines\.jsonl:2: not a JSON object"),
        (b'{"a": "\xff"}', r"lines\.jsonl:2: not UTF-8 text"),
    ],
)
def test_a_damaged_line_is_an_error_even_at_the_end(tmp_path, line, problem) -> None:
    path = tmp_path / "lines.jsonl"
    for after in (b"", json.dumps({"a": 3}).encode() + b"\n"):
        path.write_bytes(b'{"a": 1}\n' + line + b"\n" + after)
        refused(read_lines, path, match=problem)


# Folders


def write(draft: Path) -> None:
    (draft / "a.txt").write_text("prompts")


@each(
    "name, damage",
    [
        ("a.txt", partial(os.truncate, length=3)),
        ("a.txt", lambda file: file.write_text("prompt5")),
        ("a.txt", Path.unlink),
        (CHECKSUMS, partial(os.truncate, length=0)),
        (CHECKSUMS, partial(os.truncate, length=20)),
    ],
)
def test_a_kept_folder_that_is_damaged_is_made_again(tmp_path, name, damage) -> None:
    folder = tmp_path / "one"
    assert [kept_folder(folder, write), kept_folder(folder, write)] == [True, False]
    damage(folder / name)
    assert [kept_folder(folder, write), kept_folder(folder, write)] == [True, False]
    assert [*tmp_path.iterdir()] == [folder]
    assert (folder / "a.txt").read_text() == "prompts"


def test_a_kept_folder_that_could_not_be_made_leaves_nothing(tmp_path) -> None:
    with pytest.raises(OSError, match="disk"):
        kept_folder(tmp_path / "one", Mock(side_effect=OSError("disk")))
    assert [*tmp_path.iterdir()] == []


def test_a_power_cut_leaves_a_kept_folder_whole_or_to_be_made_again(tmp_path, disk) -> None:
    folder = tmp_path / "one"
    kept_folder(folder, write)
    assert disk.possible(folder / "a.txt") == {b"prompts"}
    assert disk.possible(folder / CHECKSUMS) == {(folder / CHECKSUMS).read_bytes()}
