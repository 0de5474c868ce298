"""The lowest lines of a terminal show what runs; what others print stays as it is above them."""

import io
import os

import pytest
from screen import Screen

from perfgate.runs import status_area
from perfgate.runs.status_area import StatusArea, has_room


class Terminal(io.StringIO):
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
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in {"TERM": "xterm", "CI": "", "COLUMNS": "40", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)
    return Terminal()


def others_print(terminal: Terminal, first: int, last: int) -> None:
    for number in range(first, last + 1):
        terminal.screen.feed(f"test {number} .")
        terminal.screen.feed("\n")


@pytest.mark.parametrize("printed", [0, 19, 21, 22, 23, 24, 60])
def test_what_others_print_is_whole_and_above(terminal: Terminal, printed: int) -> None:
    area = StatusArea(terminal)
    others_print(terminal, 1, printed)
    terminal.screen.feed("at work")
    area.show(["one", "two"])
    terminal.screen.feed(" ...\n")
    others_print(terminal, printed + 1, printed + 30)
    area.show(["one again", "two again"])
    terminal.screen.feed("end")
    shown = terminal.screen.lines
    assert shown[-2:] == ["one again", "two again"]
    tests = [f"test {number} ." for number in range(1, printed + 31)]
    tests.insert(printed, "at work ...")
    assert terminal.screen.text().splitlines() == [*tests, "end", "one again", "two again"]
    area.close()
    assert terminal.screen.text().splitlines() == [*tests, "end"]
    assert terminal.screen.region == (0, 23)
    terminal.screen.feed("...\n")
    assert "end..." in terminal.screen.text()


def test_it_grows_and_keeps_its_size(terminal: Terminal) -> None:
    area = StatusArea(terminal)
    others_print(terminal, 1, 23)
    area.show(["a"])
    area.show(["b", "c", "d"])
    assert terminal.screen.lines[-3:] == ["b", "c", "d"]
    area.show(["e"])
    assert terminal.screen.lines[-3:] == ["", "", "e"]
    others_print(terminal, 24, 50)
    assert terminal.screen.lines[-3:] == ["", "", "e"]
    assert [one for one in terminal.screen.text().splitlines() if "test" in one] == [
        f"test {number} ." for number in range(1, 51)
    ]


def test_of_many_lines_the_first_and_the_last_are_shown(terminal: Terminal) -> None:
    StatusArea(terminal).show([f"line {number}" for number in range(30)])
    assert terminal.screen.lines[-8:] == [*(f"line {number}" for number in range(7)), "line 29"]
    assert terminal.screen.region == (0, 15)


@pytest.mark.parametrize("text", ["x" * 200, "宽" * 100])
def test_a_long_line_is_cut_and_does_not_wrap(terminal: Terminal, text: str) -> None:
    StatusArea(terminal).show([text])
    assert 0 < len(terminal.screen.lines[-1]) <= 39


def test_another_size_is_followed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    area = StatusArea(terminal)
    area.show(["one"])
    monkeypatch.setenv("LINES", "20")
    area.show(["two"])
    assert terminal.screen.lines[19] == "two"
    assert terminal.screen.lines[23] == ""
    assert terminal.screen.region == (0, 18)


def test_a_terminal_that_is_gone_is_not_cleared(terminal: Terminal) -> None:
    area = StatusArea(terminal)
    area.show(["one"])
    terminal.close()
    terminal.write = io.StringIO.write.__get__(terminal)  # type: ignore[method-assign]
    area.close()


@pytest.mark.parametrize(
    ("name", "value", "room"),
    [
        ("CI", "", True),
        ("CI", "false", True),
        ("CI", "0", True),
        ("CI", "true", False),
        ("TERM", "dumb", False),
        ("TERM", "", False),
        ("LINES", "7", False),
        ("LINES", "8", True),
    ],
)
def test_where_there_is_room(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str, room: bool
) -> None:
    monkeypatch.setenv(name, value)
    assert has_room(terminal) == room
    assert not has_room(io.StringIO())
    terminal.close()
    assert not has_room(terminal)


def test_the_size_is_that_of_the_terminal_itself(terminal: Terminal) -> None:
    import fcntl
    import struct
    import termios

    outer, inner = os.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 34, 0, 0))
    with os.fdopen(inner, "w") as stream:
        assert status_area._size(stream) == os.terminal_size((34, 12))
    os.close(outer)
