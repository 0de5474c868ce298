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

from perfgate.core.errors import InputError
from perfgate.runs import progress_view
from perfgate.runs.progress import Progress
from perfgate.runs.progress_view import ProgressView, StatusArea, has_room

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(progress_view, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("CI", "")
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


@contextmanager
def terminal(height: int = 24, width: int = 80) -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """A real pseudo-terminal: its stream, and what was written to it so far."""
    outer, inner = os.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    os.set_blocking(outer, False)
    got = bytearray()

    def written() -> str:
        with_more = True
        while with_more:
            try:
                got.extend(os.read(outer, 65536))
            except BlockingIOError:
                with_more = False
        return got.decode(errors="ignore").replace("\r\n", "\n")

    with os.fdopen(inner, "w") as stream:
        yield stream, written
    os.close(outer)


def shown(text: str, height: int = 24, width: int = 80) -> list[str]:
    screen = Screen(height, width)
    screen.feed(text)
    return screen.lines


class TestLog:
    """Where lines cannot be replaced."""

    def test_one_line_a_step_with_the_time_and_how_many_are_done(self, file: Path) -> None:
        stream = io.StringIO()
        with viewed(file, stream):
            Progress(file, "").selection({"a": None, "b": None}, [])
            events = Progress(file, "a")
            events.plan(["start", "c1"])
            with events.step("start", "start 1 (new)"):
                pass
            events.again(2, "again, as start 1 was disturbed: other process on the CPU (x\x1b[2J)")
            events.over()
        told = re.sub(r"\d\d:\d\d:\d\d", "TIME", stream.getvalue())
        assert told.splitlines() == [
            "perfgate TIME [0/2] 0 of 2 scenarios done, 2 to come; time left not yet known",
            "perfgate TIME [0/2] a: step 1 of 2: start 1 (new), time left not yet known",
            "perfgate TIME [0/2] a: start 2: again, as start 1 was disturbed: other process on "
            "the CPU (x\\x1b[2J)",
            "perfgate TIME [1/2] a: done in 0 s",
        ]
        assert "\x1b" not in told
        assert "\r" not in told

    def test_it_breaks_a_long_silence_and_no_short_one(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = io.StringIO()
        with viewed(file, stream), Progress(file, "a").step("start", "start 1"):
            wait_for(lambda: "start 1" in stream.getvalue())
            time.sleep(0.1)
            assert stream.getvalue().count("start 1") == 1
            monkeypatch.setattr(progress_view, "_SILENT_FOR_S", 0.02)
            wait_for(lambda: stream.getvalue().count("start 1") >= 3)
        assert re.search(r"step 1 of 1: start 1, for 0 s, ", stream.getvalue())

    def test_it_begins_a_line_where_dots_of_pytest_stand(self, file: Path) -> None:
        stream, column = io.StringIO(), [0]
        view = ProgressView(file, stream, column=lambda: column[0])
        for text, at in (("one", 0), ("two", 3), ("three", 3), ("four", 5), ("five", 0)):
            column[0] = at
            Progress(file, "a").note(text)
            view._show()
        told = re.sub(r"perfgate \S+ a: ", "", stream.getvalue())
        assert told == "one\n\ntwo\nthree\n\nfour\nfive\n"

    def test_a_resumed_run_does_not_show_what_its_last_session_did(self, file: Path) -> None:
        events, stream = Progress(file, "a"), io.StringIO()
        with events.step("start", "long ago"):
            pass
        with viewed(file, stream, from_now=True), events.step("start", "now"):
            wait_for(lambda: "now" in stream.getvalue())
        assert "long ago" not in stream.getvalue()


class TestTerminal:
    def test_each_scenario_at_work_why_and_the_whole_below_what_pytest_prints(
        self, file: Path
    ) -> None:
        Progress(file, "").selection({"a": 60.0, "b": 60.0, "c": None}, [])
        Progress(file, "b").note("waiting for 8 GPUs: leased by ada")
        events = Progress(file, "a")
        with terminal() as (stream, written):
            view = ProgressView(file, stream)
            stream.write("perf_tests/test_x.py .")
            stream.flush()
            events.plan(["start", "c1"])
            events.again(2, "again, as start 1 was disturbed: a neighbour")
            with events.step("start", "start 2 (new)"):
                view.start()
                wait_for(lambda: "3 scenarios" in written())
                stream.write(".F\n")
                stream.flush()
                lines = shown(written())
                assert lines[0] == "perf_tests/test_x.py ..F"
                assert lines[20].startswith("a: step 1 of 2: start 2 (new), for ")
                assert lines[21] == "  start 2: again, as start 1 was disturbed: a neighbour"
                assert lines[22].startswith("b: waiting for 8 GPUs: leased by ada, for ")
                assert lines[23].startswith(
                    "perfgate: 0 of 3 scenarios done, 1 running, 1 waiting, 1 to come; about "
                )
            view.stop()
            assert [line for line in shown(written()) if line] == ["perf_tests/test_x.py ..F"]
            assert written().count("\x1b[r") >= 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("kind", [io.StringIO, Terminal, Broken])
@pytest.mark.parametrize("early", [True, False])
def test_a_closed_terminal_stops_the_view_and_nothing_else(
    file: Path, kind: type[io.StringIO], early: bool
) -> None:
    stream = kind()
    if early:
        stream.close()
    view = ProgressView(file, stream)
    view.start()
    if kind is not Broken:
        stream.close()
    with Progress(file, "a").step("start", "start 1"):
        wait_for(lambda: not any(one.name == "progress" for one in threading.enumerate()))
    view.stop()


def test_a_damaged_file_ends_the_view_and_not_the_run(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    file.write_text("broken\n")
    with pytest.raises(InputError, match=r"progress\.jsonl:1(.|\n)*delete the file"):
        ProgressView(file, io.StringIO(), from_now=True)
    with viewed(file, io.StringIO()):
        pass


class Screened(io.StringIO):
    """A terminal of 24 lines of 40 characters, and what is on its screen."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = Screen(24, 40)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.screen.feed(text)
        return len(text)


@pytest.fixture
def screened(monkeypatch: pytest.MonkeyPatch) -> Screened:
    for name, value in {"TERM": "xterm", "CI": "", "COLUMNS": "40", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)
    return Screened()


class TestStatusArea:
    @pytest.mark.parametrize("printed", [0, 19, 21, 22, 23, 24, 60])
    def test_what_others_print_is_whole_and_above(self, screened: Screened, printed: int) -> None:
        screen, area = screened.screen, StatusArea(screened)
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

    def test_it_grows_keeps_its_size_and_follows_the_terminal(
        self, screened: Screened, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        screen, area = screened.screen, StatusArea(screened)
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

    def test_of_many_lines_the_first_and_the_last_are_shown(self, screened: Screened) -> None:
        StatusArea(screened).show([f"line {number}" for number in range(30)])
        assert screened.screen.lines[-8:] == [*(f"line {n}" for n in range(7)), "line 29"]

    @pytest.mark.parametrize("text", ["x" * 200, "宽" * 100])
    def test_a_long_line_is_cut_and_does_not_wrap(self, screened: Screened, text: str) -> None:
        StatusArea(screened).show([text])
        assert 0 < len(screened.screen.lines[-1]) <= 39

    @pytest.mark.parametrize(
        ("name", "value", "room"),
        [
            *(("CI", "", True), ("CI", "false", True), ("CI", "0", True), ("CI", "true", False)),
            *(("TERM", "dumb", False), ("TERM", "", False)),
            *(("LINES", "7", False), ("LINES", "8", True)),
        ],
    )
    def test_where_there_is_room(
        self,
        screened: Screened,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        value: str,
        room: bool,
    ) -> None:
        monkeypatch.setenv(name, value)
        assert has_room(screened) == room
        assert not has_room(io.StringIO())

    def test_the_size_is_that_of_the_terminal_itself(self) -> None:
        with terminal(height=12, width=34) as (stream, _):
            assert progress_view._size(stream) == os.terminal_size((34, 12))
