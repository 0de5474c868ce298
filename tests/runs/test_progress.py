"""The events of a run: written by whoever measures, and what they say to who looks on."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.files.durable_files import read_lines
from perfgate.runs import progress
from perfgate.runs.progress import Progress, ProgressState, span


def test_a_full_disk_takes_the_place_of_nothing_that_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RunError("disk_full", "cannot write progress.jsonl")

    events = Progress(tmp_path / "progress.jsonl", "a")
    step = events.step("c1", "start 1")
    step.__enter__()
    monkeypatch.setattr(progress, "append_line", full)
    assert not step.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    events.over()
    with pytest.raises(RunError, match="disk_full"), events.step("c1", "start 1"):
        pass


def test_the_events_as_programs_read_them(tmp_path: Path) -> None:
    file, before = tmp_path / "progress.jsonl", time.monotonic()
    Progress(file, "").selection({"a": 60.0, "b": None}, ["b"])
    events = Progress(file, "a")
    events.plan(["start"])
    events.again(2, "again, as start 1 was disturbed: x")
    events.note("waiting for a GPU")
    with pytest.raises(ValueError, match="broken"), events.step("start", "start 1"):
        raise ValueError("broken")
    events.over()
    lines = read_lines(file)
    clocks = [before, *(line.pop("clock") for line in lines), time.monotonic()]
    assert clocks == sorted(clocks)
    assert lines == [
        {"who": "", "event": "selection", "seconds": {"a": 60.0, "b": None}, "over": ["b"]},
        {"who": "a", "event": "plan", "steps": ["start"]},
        {"who": "a", "event": "again", "text": "start 2: again, as start 1 was disturbed: x"},
        {"who": "a", "event": "note", "text": "waiting for a GPU"},
        {"who": "a", "event": "begin", "kind": "start", "detail": "start 1"},
        {"who": "a", "event": "end", "kind": "start"},
        {"who": "a", "event": "over"},
    ]


def read(line: str) -> dict[str, Any]:
    """An event as a row writes it: `plan start c1`, `begin start 10`, `note 10 waiting`.

    `b:` before it says whose it is, else it is of `a`.
    """
    who, _, text = line.rpartition(":") if line[1:2] == ":" else ("a", "", line)
    event, *words = text.split()
    plain: dict[str, Any] = {"who": who, "clock": 0.0, "event": event}
    match event:
        case "plan":
            return {**plain, "steps": words}
        case "again":
            return {**plain, "text": " ".join(words)}
        case "note":
            return {**plain, "clock": float(words[0]), "text": " ".join(words[1:])}
        case "selection":
            seconds = dict(word.split("=") for word in words if "=" in word)
            known = {name: float(number) if number else None for name, number in seconds.items()}
            return {**plain, "seconds": known, "over": [word for word in words if "=" not in word]}
    kind = words[0]
    return {**plain, "clock": float(words[-1]), "kind": kind, "detail": f"the {kind}"}


def fed(lines: str) -> ProgressState:
    """The state after the events of a text, with `;` between them."""
    state = ProgressState()
    for line in filter(None, lines.split(";")):
        state.feed(read(line.strip()))
    return state


def cases(text: str) -> Iterator[tuple[str, float, list[str]]]:
    """Blocks with an empty line between them: events, `at` and a time; what is shown then."""
    for block in text.strip().split("\n\n"):
        given, *shown = (line for line in block.splitlines() if not line.startswith("#"))
        events, _, clock = given.rpartition(" at ")
        yield events, float(clock), shown


AT_WORK, WHOLE = (Path(__file__).parents[1] / "data/progress.txt").read_text().split("---\n")


@each(("events", "clock", "lines"), [*cases(AT_WORK), ("", 0, [])])
def test_what_is_at_work(events: str, clock: float, lines: list[str]) -> None:
    assert [line for line, _ in fed(events).at_work(clock)] == lines


@each(("events", "clock", "lines"), cases(WHOLE))
def test_the_whole_selection(events: str, clock: float, lines: list[str]) -> None:
    assert [fed(events).total(clock)] == lines


def test_why_a_start_is_made_stays_while_it_runs() -> None:
    why = "start 2: again, as start 1 was disturbed: other processes used 30 % of 2 cores"
    events = f"plan start c1; again {why}; begin start 0"
    for more, shown in (("", why), ("; end start 3; begin c1 3", why), ("; plan start", "")):
        events += more
        assert fed(events).at_work(6)[0][1] == shown


def test_a_hostile_name_of_a_program_is_text_on_one_line() -> None:
    hostile = {"who": "a", "clock": 0.0, "text": "by \x1b[2J\r\n\u202e[red]evil"}
    harmless = "by \\x1b[2J \\u202e[red]evil"
    state = ProgressState()
    assert state.feed({**hostile, "event": "again"}) == f"a: {harmless}"
    assert state.feed({**hostile, "event": "note"}) == f"a: {harmless}"
    assert state.at_work(0) == [(f"a: {harmless}, for 0 s", harmless)]


def test_each_step_each_wait_and_each_reason_is_one_line() -> None:
    state = ProgressState()
    for event, line in (
        ("selection c a= b= c=", "[1/3] 1 of 3 scenarios done, 2 to come; time left not yet known"),
        ("plan c1 c4", ""),
        ("note 0 waiting for 1 GPU", "[1/3] a: waiting for 1 GPU"),
        ("begin c1 0", "[1/3] a: step 1 of 2: the c1, time left not yet known"),
        ("end c1 4", ""),
        ("end c1 4", ""),
        ("again start 2: as start 1 was disturbed", "[1/3] a: start 2: as start 1 was disturbed"),
        ("over 64", "[2/3] a: done in 1 min 4 s"),
        ("e:over 64", "[2/3] e: not measured"),
    ):
        assert state.feed(read(event)) == line
    without_a_selection = fed("begin start 0")
    assert (without_a_selection.count(), without_a_selection.total(1)) == ("", "")


@each(
    ("seconds", "text"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min")]
    + [(3599.6, "1 h 0 min"), (8000, "2 h 13 min")],
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text
