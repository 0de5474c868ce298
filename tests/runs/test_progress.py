import io
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.durable_files import read_lines
from perfgate.core.errors import InputError, RunError
from perfgate.runs import progress
from perfgate.runs.progress import Progress, ProgressState, ProgressView


def plan(*steps: str, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": 0.0, "event": "plan", "steps": list(steps)}


def begin(kind: str, clock: float, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": clock, "event": "begin", "kind": kind, "detail": f"the {kind}"}


def end(kind: str, clock: float, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": clock, "event": "end", "kind": kind}


def fed(*events: dict[str, Any]) -> ProgressState:
    state = ProgressState()
    for event in events:
        state.feed(event)
    return state


def test_a_full_disk_takes_the_place_of_nothing_that_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RunError("disk_full", "cannot write progress.jsonl")

    told = Progress(tmp_path / "progress.jsonl", "a")

    def interrupted() -> None:
        with told.step("c1", "start 1"):
            monkeypatch.setattr(progress, "append_line", full)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(RunError, match="disk_full"), told.step("c1", "start 1"):
        pass


class TestState:
    @pytest.mark.parametrize(
        ("events", "clock", "lines"),
        [
            ([], 0, []),
            ([plan("start", "c1")], 5, []),
            (
                [plan("start", "c1"), begin("start", 10)],
                12,
                ["a: step 1 of 2: the start, for 2 s, time left not yet known"],
            ),
            (
                [plan("start", "c1"), begin("start", 10), end("start", 14)],
                15,
                [],
            ),
            (
                [plan("start", "c1", "c4"), begin("start", 10), end("start", 14), begin("c1", 14)],
                75,
                ["a: step 2 of 3: the c1, for 1 min 1 s, time left not yet known"],
            ),
            (
                # The second start is known to take 4 s, c1 10 s; c4 was never seen.
                [
                    *(plan("start", "c1"), begin("start", 0), end("start", 4)),
                    *(begin("c1", 4), end("c1", 14)),
                    *(plan("start", "c1", "c4"), begin("start", 14)),
                ],
                17,
                ["a: step 3 of 5: the start, for 3 s, about 11 s left and 1 steps not yet timed"],
            ),
            (
                # A step that takes too long takes nothing from those after it.
                [
                    *(plan("start", "c1"), begin("start", 0), end("start", 4)),
                    *(begin("c1", 4), end("c1", 14)),
                    *(plan("start", "c1"), begin("start", 14)),
                ],
                114,
                ["a: step 3 of 4: the start, for 1 min 40 s, about 10 s left"],
            ),
            (
                # The mean of what was seen.
                [
                    *(plan("c1", "c1", "c1"), begin("c1", 0), end("c1", 10)),
                    *(begin("c1", 10), end("c1", 30), begin("c1", 30)),
                ],
                31,
                ["a: step 3 of 3: the c1, for 1 s, about 14 s left"],
            ),
            (
                # What one campaign learns serves the other.
                [
                    *(plan("c1", who="b"), begin("c1", 0, who="b"), end("c1", 60, who="b")),
                    *(plan("c1"), begin("c1", 60)),
                ],
                60,
                ["a: step 1 of 1: the c1, for 0 s, about 1 min 0 s left"],
            ),
            (
                [plan("c1"), begin("c1", 0), plan("c1", who="b"), begin("c1", 1, who="b")],
                2,
                [
                    "a: step 1 of 1: the c1, for 2 s, time left not yet known",
                    "b: step 1 of 1: the c1, for 1 s, time left not yet known",
                ],
            ),
            (
                # A clock that was set back.
                [plan("c1"), begin("c1", 100)],
                90,
                ["a: step 1 of 1: the c1, for 0 s, time left not yet known"],
            ),
        ],
    )
    def test_lines(self, events: list[dict[str, Any]], clock: float, lines: list[str]) -> None:
        assert fed(*events).lines(clock) == lines

    def test_only_a_beginning_is_worth_a_line_of_its_own(self) -> None:
        state = ProgressState()
        assert state.feed(plan("c1", "c4")) is None
        assert state.feed(begin("c1", 0)) == (
            "a: step 1 of 2: the c1, for 0 s, time left not yet known"
        )
        assert state.feed(end("c1", 4)) is None
        assert state.feed(end("c1", 4)) is None


class TestWriting:
    def test_a_step_has_a_beginning_and_an_end_even_if_it_fails(self, tmp_path: Path) -> None:
        file = tmp_path / "progress.jsonl"
        events = Progress(file, "a")
        before = time.monotonic()
        events.plan(["start"])
        with pytest.raises(ValueError, match="broken"), events.step("start", "start 1"):
            raise ValueError("broken")
        found = read_lines(file)
        assert [(line["who"], line["event"]) for line in found] == [
            ("a", "plan"),
            ("a", "begin"),
            ("a", "end"),
        ]
        assert found[1]["detail"] == "start 1"
        assert before <= found[1]["clock"] <= found[2]["clock"] <= time.monotonic()

    def test_without_a_file_nothing_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        events = Progress(None, "a")
        events.plan(["start"])
        with events.step("start", "start 1"):
            events.note("waits for a GPU")
        assert list(tmp_path.iterdir()) == []
        assert capfd.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(progress, "_LIVE_INTERVAL_S", 0.01)
    return tmp_path / "progress.jsonl"


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


@pytest.mark.timeout(30)
class TestView:
    def test_plain_lines_where_lines_cannot_be_replaced(self, file: Path) -> None:
        stream = io.StringIO()
        view = ProgressView(file, stream)
        view.start()
        events = Progress(file, "a")
        events.plan(["start", "c1"])
        with events.step("start", "start 1"):
            wait_for(lambda: "start 1" in stream.getvalue())
        with events.step("c1", "load c1"):
            wait_for(lambda: "load c1" in stream.getvalue())
        view.stop()
        assert "\x1b" not in stream.getvalue()
        assert re.fullmatch(
            r"\nperfgate: a: step 1 of 2: start 1, for 0 s, time left not yet known\n"
            r"perfgate: a: step 2 of 2: load c1, for 0 s, time left not yet known\n",
            stream.getvalue(),
        )

    def test_a_resumed_run_does_not_show_what_its_last_session_did(self, file: Path) -> None:
        events, stream = Progress(file, "a"), io.StringIO()
        with events.step("start", "long ago"):
            pass
        view = ProgressView(file, stream, from_now=True)
        view.start()
        with events.step("start", "now"):
            wait_for(lambda: "now" in stream.getvalue())
        view.stop()
        assert "long ago" not in stream.getvalue()

    def test_a_long_step_is_told_again(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "_PLAIN_INTERVAL_S", 0.02)
        stream = io.StringIO()
        view = ProgressView(file, stream)
        view.start()
        with Progress(file, "a").step("start", "start 1"):
            wait_for(lambda: stream.getvalue().count("start 1") >= 3)
        view.stop()

    def test_one_line_that_is_replaced_and_cleared_in_a_terminal(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        stream = Terminal()
        view = ProgressView(file, stream)
        view.start()
        with Progress(file, "a").step("start", "a rather long description of what is done"):
            wait_for(lambda: stream.getvalue().count("\r") >= 2)
        view.stop()
        first, second, *_ = stream.getvalue().split("\r\x1b[K")[1:]
        assert first == second == "a: step 1 of 1: a rather long descripti"
        assert len(first) == 39
        assert "\n" not in stream.getvalue()
        assert stream.getvalue().endswith("\r\x1b[K")

    def test_at_its_end_it_shows_what_is_left(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(progress, "_LIVE_INTERVAL_S", 1000.0)
        stream = io.StringIO()
        view = ProgressView(file, stream)
        view.start()
        with Progress(file, "a").step("start", "start 1"):
            pass
        view.stop()
        assert "start 1" in stream.getvalue()

    @pytest.mark.parametrize("kind", [io.StringIO, Terminal])
    @pytest.mark.parametrize("early", [True, False])
    def test_a_closed_terminal_stops_the_view_and_nothing_else(
        self, file: Path, kind: type[io.StringIO], early: bool
    ) -> None:
        stream = kind()
        if early:
            stream.close()
        view = ProgressView(file, stream)
        view.start()
        stream.close()
        with Progress(file, "a").step("start", "start 1"):
            wait_for(lambda: not any(one.name == "progress" for one in threading.enumerate()))
        view.stop()

    def test_a_full_or_broken_terminal_likewise(self, file: Path) -> None:
        class Broken(io.StringIO):
            def write(self, _: str) -> int:
                raise BrokenPipeError

        view = ProgressView(file, Broken())
        view.start()
        with Progress(file, "a").step("start", "start 1"):
            wait_for(lambda: not any(one.name == "progress" for one in threading.enumerate()))
        view.stop()

    def test_a_line_that_is_still_being_written_waits(self, file: Path) -> None:
        stream = io.StringIO()
        view = ProgressView(file, stream)
        line = json.dumps(begin("start", 0.0)).encode() + b"\n"
        file.write_bytes(line[:30])
        view.start()
        time.sleep(0.05)
        file.write_bytes(line)
        wait_for(lambda: "the start" in stream.getvalue())
        view.stop()


def test_a_damaged_file_ends_the_view_and_not_the_run(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    file.write_text("broken\n")
    with pytest.raises(InputError, match=r"progress\.jsonl:1(.|\n)*delete the file"):
        ProgressView(file, io.StringIO(), from_now=True)
    view = ProgressView(file, io.StringIO())
    view.start()
    view.stop()
