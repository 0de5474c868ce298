"""What a person at a terminal, and the log of a CI job, see of a run."""

import fcntl
import io
import os
import re
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest
from screen import Screen
from tables import each

from perfgate.core.errors import InputError
from perfgate.runs import progress_view
from perfgate.runs.progress import Progress
from perfgate.runs.progress_view import ProgressView, StatusArea, has_room

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(progress_view, "_LOOK_EVERY_S", 0.01)
    return tmp_path / "progress.jsonl"


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


@contextmanager
def viewed(file: Path, stream: TextIO, **how: Any) -> Iterator[None]:
    """A view of the events in that file, from now to the end of the block."""
    view = ProgressView(file, stream, **how)
    view.start()
    yield
    view.stop()


def test_a_log_has_one_line_a_step_with_the_time_and_how_many_are_done(file: Path) -> None:
    stream = io.StringIO()
    with viewed(file, stream):
        Progress(file, "").selection({"a": None, "b": None}, [])
        events = Progress(file, "a")
        events.plan(["start", "c1"])
        with events.step("start", "start 1 (new)"):
            pass
        events.again(2, "again, as start 1 was disturbed: other process on the CPU (x\x1b[2J)")
        events.over()
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", stream.getvalue())
    assert text.split("\n") == [
        "perfgate TIME [0/2] 0 of 2 scenarios done, 2 to come; time left not yet known",
        "perfgate TIME [0/2] a: step 1 of 2: start 1 (new), time left not yet known",
        "perfgate TIME [0/2] a: start 2: again, as start 1 was disturbed: other process on "
        "the CPU (x\\x1b[2J)",
        "perfgate TIME [1/2] a: done in 0 s",
        "",
    ]


def test_a_log_breaks_a_long_silence_and_no_short_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    with viewed(file, stream), Progress(file, "a").step("start", "start 1"):
        wait_for(lambda: "start 1" in stream.getvalue())
        time.sleep(0.1)
        assert stream.getvalue().count("start 1") == 1
        monkeypatch.setattr(progress_view, "_SILENT_FOR_S", 0.02)
        wait_for(lambda: stream.getvalue().count("start 1") >= 3)
    assert re.search(r"step 1 of 1: start 1, for 0 s, ", stream.getvalue())


def test_a_log_begins_a_line_where_dots_of_pytest_stand(file: Path) -> None:
    stream, column = io.StringIO(), [0]
    view = ProgressView(file, stream, column=lambda: column[0])
    for text, at in (("one", 0), ("two", 3), ("three", 3), ("four", 5), ("five", 0)):
        column[0] = at
        Progress(file, "a").note(text)
        view._show()
    text = re.sub(r"perfgate \S+ a: ", "", stream.getvalue())
    assert text == "one\n\ntwo\nthree\n\nfour\nfive\n"


def test_a_resumed_run_does_not_show_what_its_last_session_did(file: Path) -> None:
    events, stream = Progress(file, "a"), io.StringIO()
    with events.step("start", "long ago"):
        pass
    with viewed(file, stream, from_now=True), events.step("start", "now"):
        wait_for(lambda: "now" in stream.getvalue())
    assert "long ago" not in stream.getvalue()


class Terminal(io.StringIO):
    """A terminal of 24 lines of 90 characters, and what is on its screen."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = Screen(24, 90)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.screen.feed(text)
        return super().write(text)


class Broken(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in {"TERM": "xterm", "CI": "", "COLUMNS": "90", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)
    return Terminal()


def test_a_terminal_has_each_scenario_at_work_why_and_the_whole_below_what_pytest_prints(
    file: Path, terminal: Terminal
) -> None:
    Progress(file, "").selection({"a": 60.0, "b": 60.0, "c": None}, [])
    Progress(file, "b").note("waiting for 8 GPUs: leased by ada")
    events = Progress(file, "a")
    view = ProgressView(file, terminal)
    terminal.write("perf_tests/test_x.py .")
    events.plan(["start", "c1"])
    events.again(2, "again, as start 1 was disturbed: a neighbour")
    with events.step("start", "start 2 (new)"):
        view._show()
        terminal.write(".F\n")
        lines = terminal.screen.lines
        assert lines[0] == "perf_tests/test_x.py ..F"
        assert lines[20].startswith("a: step 1 of 2: start 2 (new), for ")
        assert lines[21] == "  start 2: again, as start 1 was disturbed: a neighbour"
        assert lines[22].startswith("b: waiting for 8 GPUs: leased by ada, for ")
        whole = "perfgate: 0 of 3 scenarios done, 1 running, 1 waiting, 1 to come; about "
        assert lines[23].startswith(whole)
    view.start()
    view.stop()
    assert [line for line in terminal.screen.lines if line] == ["perf_tests/test_x.py ..F"]
    assert "\x1b[r" in terminal.getvalue()


@pytest.mark.parametrize("kind", [io.StringIO, Terminal, Broken])
@pytest.mark.parametrize("early", [True, False])
def test_a_closed_terminal_stops_the_view_and_nothing_else(
    file: Path, terminal: Terminal, kind: type[io.StringIO], early: bool
) -> None:
    stream = terminal if kind is Terminal else kind()
    if early:
        stream.close()
    view = ProgressView(file, stream)
    view.start()
    if kind is not Broken:
        stream.close()
    with Progress(file, "a").step("start", "start 1"):
        wait_for(lambda: not any(one.name == "progress" for one in threading.enumerate()))
    view.stop()


def test_a_damaged_file_ends_the_view_and_not_the_run(file: Path) -> None:
    file.write_text("broken\n")
    with pytest.raises(InputError, match=r"progress\.jsonl:1(.|\n)*delete the file"):
        ProgressView(file, io.StringIO(), from_now=True)
    with viewed(file, io.StringIO()):
        pass


@pytest.mark.parametrize("printed", [0, 19, 21, 22, 23, 24, 60])
def test_what_others_print_is_whole_and_above_the_area(terminal: Terminal, printed: int) -> None:
    screen, area = terminal.screen, StatusArea(terminal)
    tests = [f"test {number} ." for number in range(printed + 30)]
    screen.feed("".join(f"{line}\n" for line in tests[:printed]) + "at work")
    area.show(["one", "two"])
    screen.feed(" ...\n" + "".join(f"{line}\n" for line in tests[printed:]))
    area.show(["one again", "two again"])
    screen.feed("end")
    tests.insert(printed, "at work ...")
    assert screen.text().splitlines() == [*tests, "end", "one again", "two again"]
    area.close()
    assert screen.text().splitlines() == [*tests, "end"]
    assert screen.region == (0, 23)
    screen.feed("...\n")
    assert "end..." in screen.text()


def test_the_area_grows_keeps_its_size_and_follows_the_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, area = terminal.screen, StatusArea(terminal)
    tests = [f"test {number}" for number in range(50)]
    screen.feed("".join(f"{line}\n" for line in tests[:23]))
    area.show(["a"])
    area.show(["b", "c", "d"])
    assert screen.lines[-3:] == ["b", "c", "d"]
    area.show(["e"])
    screen.feed("".join(f"{line}\n" for line in tests[23:]))
    assert screen.lines[-3:] == ["", "", "e"]
    assert [one for one in screen.text().splitlines() if "test" in one] == tests
    monkeypatch.setenv("LINES", "20")
    area.show(["f"])
    assert (screen.lines[19], screen.lines[23], screen.region) == ("f", "", (0, 16))


def test_of_many_lines_the_first_and_the_last_are_shown_and_long_ones_cut(
    terminal: Terminal,
) -> None:
    area = StatusArea(terminal)
    area.show([*(f"line {number}" for number in range(28)), "x" * 200, "宽" * 100])
    lines = terminal.screen.lines[-8:]
    assert lines == [*(f"line {n}" for n in range(7)), "宽" * 44]
    area.show(["x" * 200])
    assert terminal.screen.lines[-1] == "x" * 89


@each(
    ("name", "value", "room"),
    [
        *(("CI", "", True), ("CI", "false", True), ("CI", "0", True), ("CI", "true", False)),
        *(("TERM", "dumb", False), ("TERM", "", False), ("LINES", "7", False)),
        ("LINES", "8", True),
    ],
)
def test_where_there_is_room(terminal: Terminal, name: str, value: str, room: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        assert has_room(terminal) == room
    assert not has_room(io.StringIO())


def test_the_size_is_that_of_the_terminal_itself() -> None:
    outer, inner = os.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 34, 0, 0))
    with os.fdopen(inner, "w") as stream:
        assert progress_view._size(stream) == os.terminal_size((34, 12))
    os.close(outer)
