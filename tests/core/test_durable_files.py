import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.durable_files import append_line, read_json, read_lines, write_json, write_text
from perfgate.core.errors import InputError, RunError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)

APPEND = """
import sys
from pathlib import Path
from perfgate.core.durable_files import append_line
for number in range(int(sys.argv[3])):
    append_line(Path(sys.argv[1]), {"who": sys.argv[2], "n": number, "text": "é×" * 5000})
"""


def appender(path: Path, who: str, lines: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", APPEND, str(path), who, str(lines)])


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mounting, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs a real full disk: no mount program here")
    if done.returncode:
        pytest.skip(f"needs a real full disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


class TestWriting:
    def test_makes_folders_and_leaves_nothing_but_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "b" / "file.txt"
        write_text(path, "one\n")
        write_text(path, "two\n")
        assert path.read_text() == "two\n"
        assert [one.name for one in path.parent.iterdir()] == ["file.txt"]

    def test_others_may_read_the_file(self, tmp_path: Path) -> None:
        write_text(tmp_path / "file.txt", "one")
        assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize("step", ["fsync", "replace"])
    def test_a_failure_leaves_the_old_content(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        path = tmp_path / "file.txt"
        write_text(path, "old")

        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, step, fail)
        with pytest.raises(OSError, match="Input/output error"):
            write_text(path, "new")
        monkeypatch.undo()
        assert path.read_text() == "old"
        assert [one.name for one in tmp_path.iterdir()] == ["file.txt"]

    def test_an_interrupt_leaves_the_old_content(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file.txt"
        write_text(path, "old")

        def interrupt(_: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_text(path, "new")
        assert path.read_text() == "old"
        assert [one.name for one in tmp_path.iterdir()] == ["file.txt"]

    def test_a_full_disk_is_told_as_such(self, tiny_disk: Path) -> None:
        path = tiny_disk / "file.txt"
        write_text(path, "old")
        with pytest.raises(RunError, match=r"cannot write .*file\.txt: No space left") as caught:
            write_text(path, "x" * 2**20)
        assert caught.value.failure == "disk_full"
        assert path.read_text() == "old"
        assert [one.name for one in tiny_disk.iterdir()] == ["file.txt"]

    @pytest.mark.parametrize(
        ("number", "error"),
        [
            (errno.ENOSPC, RunError),
            (errno.EDQUOT, RunError),
            (errno.EFBIG, OSError),
            (errno.EROFS, OSError),
        ],
    )
    def test_only_a_full_disk_is_a_failure_of_the_run(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        number: int,
        error: type[Exception],
    ) -> None:
        def fail(_: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(error):
            write_text(tmp_path / "file.txt", "new")
        with pytest.raises(error):
            append_line(tmp_path / "lines.jsonl", {"a": 1})

    def test_json_is_sorted_one_key_a_line(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", {"b": 1, "a": ["×"]})
        assert (tmp_path / "a.json").read_text() == '{\n "a": [\n  "×"\n ],\n "b": 1\n}\n'

    def test_json_knows_no_infinity(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "a.json", {"a": float("inf")})
        assert list(tmp_path.iterdir()) == []


class TestAppending:
    def test_one_line_each(self, tmp_path: Path) -> None:
        path = tmp_path / "lines.jsonl"
        append_line(path, {"b": "two\nlines", "a": 1})
        append_line(path, {"a": 2})
        assert path.read_text() == '{"a": 1, "b": "two\\nlines"}\n{"a": 2}\n'

    def test_lines_of_several_processes_do_not_mix(self, tmp_path: Path) -> None:
        path = tmp_path / "lines.jsonl"
        writers = [appender(path, who, 40) for who in "abcd"]
        assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
        lines = read_lines(path)
        for who in "abcd":
            assert [line["n"] for line in lines if line["who"] == who] == list(range(40))
        assert {line["text"] for line in lines} == {"é×" * 5000}

    def test_a_killed_writer_costs_at_most_its_last_line(self, tmp_path: Path) -> None:
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

    @pytest.mark.parametrize("lost", [1, 2, 3, 9])
    def test_a_cut_last_line_is_replaced(self, tmp_path: Path, lost: int) -> None:
        path = tmp_path / "lines.jsonl"
        append_line(path, {"a": "whole"})
        append_line(path, {"a": "é×…"})
        os.truncate(path, path.stat().st_size - lost)
        assert read_lines(path) == [{"a": "whole"}]
        append_line(path, {"a": "next"})
        assert read_lines(path) == [{"a": "whole"}, {"a": "next"}]

    @pytest.mark.parametrize("rest", [10, 65535, 65536, 65537, 200_000])
    def test_a_cut_line_of_any_length_is_replaced(self, tmp_path: Path, rest: int) -> None:
        path = tmp_path / "lines.jsonl"
        append_line(path, {"a": "whole"})
        with path.open("a") as file:
            file.write("x" * rest)
        append_line(path, {"a": "next"})
        assert read_lines(path) == [{"a": "whole"}, {"a": "next"}]

    def test_a_file_of_nothing_but_a_cut_line(self, tmp_path: Path) -> None:
        path = tmp_path / "lines.jsonl"
        path.write_text('{"a"')
        append_line(path, {"a": "next"})
        assert read_lines(path) == [{"a": "next"}]

    @pytest.mark.parametrize(("fits", "too_much"), [(50_000, 50_000), (62_000, 6_000)])
    def test_a_full_disk_undoes_the_line(self, tiny_disk: Path, fits: int, too_much: int) -> None:
        path = tiny_disk / "lines.jsonl"
        append_line(path, {"a": "x" * fits})
        with pytest.raises(RunError, match="No space left") as caught:
            append_line(path, {"a": "y" * too_much})
        assert caught.value.failure == "disk_full"
        assert path.read_bytes().endswith(b'x"}\n')
        append_line(path, {"a": "short"})
        assert [line["a"][:5] for line in read_lines(path)] == ["xxxxx", "short"]

    def test_a_failed_line_is_undone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "lines.jsonl"
        append_line(path, {"a": 1})

        def fail(_: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            append_line(path, {"a": 2})
        assert path.read_text() == '{"a": 1}\n'

    def test_infinity_writes_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            append_line(tmp_path / "lines.jsonl", {"a": float("nan")})
        assert not (tmp_path / "lines.jsonl").exists()


class TestReading:
    @given(value=JSON)
    def test_reads_back_what_was_written(
        self, value: object, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        folder = tmp_path_factory.mktemp("round")
        write_json(folder / "a.json", value)
        assert read_json(folder / "a.json", what="thing") == value
        append_line(folder / "a.jsonl", {"value": value})
        assert read_lines(folder / "a.jsonl") == [{"value": value}]

    def test_bytes_that_are_no_text_survive(self, tmp_path: Path) -> None:
        value = {"argument": os.fsdecode(b"model-\xff")}
        write_json(tmp_path / "a.json", value)
        append_line(tmp_path / "a.jsonl", value)
        assert (tmp_path / "a.json").read_text(encoding="utf-8").count("model-\\udcff") == 1
        assert read_json(tmp_path / "a.json", what="thing") == value
        assert read_lines(tmp_path / "a.jsonl") == [value]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b'{\n "a": 1,\n}', r"a\.json:3: thing is not JSON\n  found: Expecting property"),
            (b"", r"a\.json:1: thing is not JSON"),
            (b"\xff{}", "thing is not UTF-8 text"),
            (b'{"a": NaN}', "thing is not JSON\n  found: not a finite number: NaN"),
            (b'{"a": -1e999}', "thing is not JSON\n  found: not a finite number: -1e999"),
        ],
    )
    def test_tells_what_is_wrong_and_where(
        self, tmp_path: Path, content: bytes, problem: str
    ) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(content)
        with pytest.raises(InputError, match=problem) as caught:
            read_json(path, what="thing", hint="write it again")
        assert str(caught.value).endswith("fix: write it again")

    def test_tells_a_missing_file_from_an_unreadable_one(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no such thing"):
            read_json(tmp_path / "a.json", what="thing")
        with pytest.raises(InputError, match="thing cannot be read\n  found: Is a directory"):
            read_json(tmp_path, what="thing")

    def test_no_file_has_no_lines(self, tmp_path: Path) -> None:
        assert read_lines(tmp_path / "lines.jsonl") == []

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            (b'{"a"', r"lines\.jsonl:2: not JSON"),
            (b"[1]", r"lines\.jsonl:2: not a JSON object"),
            (b'{"a": "\xff"}', r"lines\.jsonl:2: not UTF-8 text"),
        ],
    )
    def test_a_damaged_line_is_an_error_even_at_the_end(
        self, tmp_path: Path, line: bytes, problem: str
    ) -> None:
        path = tmp_path / "lines.jsonl"
        path.write_bytes(b'{"a": 1}\n' + line + b"\n")
        with pytest.raises(InputError, match=problem):
            read_lines(path)
        path.write_bytes(path.read_bytes() + json.dumps({"a": 3}).encode() + b"\n")
        with pytest.raises(InputError, match=problem):
            read_lines(path)
