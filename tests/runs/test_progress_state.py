"""What the events of a run say: what runs, what waits, why, and how long the rest will take."""

from typing import Any

from tables import each

from perfgate.runs.progress_state import ProgressState, heartbeat, span


def plan(*steps: str, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": 0.0, "event": "plan", "steps": list(steps)}


def begin(kind: str, clock: float, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": clock, "event": "begin", "kind": kind, "detail": f"the {kind}"}


def end(kind: str, clock: float, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": clock, "event": "end", "kind": kind}


def note(text: str, clock: float, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": clock, "event": "note", "text": text}


def again(text: str, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": 0.0, "event": "again", "text": text}


def over(clock: float, who: str = "a") -> dict[str, Any]:
    return {"who": who, "clock": clock, "event": "over"}


def selection(*kept: str, **seconds: float | None) -> dict[str, Any]:
    return {"who": "", "clock": 0.0, "event": "selection", "seconds": seconds, "over": list(kept)}


def fed(*events: dict[str, Any]) -> ProgressState:
    state = ProgressState()
    for event in events:
        state.feed(event)
    return state


class TestLines:
    @each(
        ("events", "clock", "lines"),
        [
            ([], 0, []),
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
                ["a: step 3 of 5: the start, for 3 s, about 11 s left and 1 step not yet timed"],
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
            (
                [plan("start"), note("waiting for 8 GPUs: leased by ada", 10)],
                75,
                ["a: waiting for 8 GPUs: leased by ada, for 1 min 5 s"],
            ),
            (
                # It waits no longer.
                [plan("start"), note("waiting", 10), begin("start", 20)],
                21,
                ["a: step 1 of 1: the start, for 1 s, time left not yet known"],
            ),
            (
                [plan("start"), begin("start", 20), note("job 7 has waited 60 s", 80)],
                81,
                [
                    "a: step 1 of 1: the start, for 1 min 1 s, time left not yet known; "
                    "job 7 has waited 60 s"
                ],
            ),
            ([begin("start", 0), over(5)], 6, []),
        ],
    )
    def test_what_is_at_work(
        self, events: list[dict[str, Any]], clock: float, lines: list[str]
    ) -> None:
        assert fed(*events).lines(clock) == lines

    def test_why_a_start_is_made_stays_while_it_runs(self) -> None:
        why = "start 2: again, as start 1 was disturbed: other processes used 30 % of 2 cores"
        state = fed(plan("start", "c1"), again(why), begin("start", 0))
        assert [found for _, found in state.reasons(1)] == [why]
        state.feed(end("start", 3))
        state.feed(begin("c1", 3))
        assert [found for _, found in state.reasons(4)] == [why]
        state.feed(plan("start"))
        state.feed(begin("start", 5))
        assert [found for _, found in state.reasons(6)] == [""]

    def test_a_hostile_name_of_a_program_is_text_on_one_line(self) -> None:
        state = fed(again("start 2: by \x1b[2J\r\n\u202eevil"), note("for \x1b]0;x\x07", 0))
        ((line, why),) = state.reasons(0)
        assert why == "start 2: by \\x1b[2J \\u202eevil"
        assert line == "a: for \\x1b]0;x\\x07, for 0 s"
        assert state.feed(note("\x1b[2J\n", 1)) == "a: \\x1b[2J"


class TestNews:
    def test_each_step_each_wait_and_each_reason_is_one_line(self) -> None:
        state = ProgressState()
        told = [
            state.feed(event)
            for event in (
                selection(a=None, b=None),
                plan("c1", "c4"),
                note("waiting for 1 GPU", 0),
                begin("c1", 0),
                end("c1", 4),
                end("c1", 4),
                again("start 2: again, as start 1 was disturbed: x"),
                over(64),
                over(64, who="b"),
            )
        ]
        assert told == [
            "0 of 2 scenarios done, 2 to come; time left not yet known",
            None,
            "a: waiting for 1 GPU",
            "a: step 1 of 2: the c1, time left not yet known",
            None,
            None,
            "a: start 2: again, as start 1 was disturbed: x",
            "a: done in 1 min 4 s",
            "b: not measured",
        ]

    def test_the_count_of_what_is_done_goes_with_it(self) -> None:
        state = fed(selection("c", a=None, b=None, c=None))
        assert state.count() == "[1/3] "
        state.feed(begin("start", 0))
        state.feed(over(9))
        state.feed(over(9, who="elsewhere"))
        assert state.count() == "[2/3] "
        without_a_selection = fed(begin("start", 0))
        assert (without_a_selection.count(), without_a_selection.total(1)) == ("", "")


class TestTotal:
    @each(
        ("events", "clock", "told"),
        [
            (
                [selection(a=3600, b=7200)],
                0,
                "0 of 2 scenarios done, 2 to come; about 3 h 0 min left",
            ),
            (
                [selection(a=3600, b=None)],
                0,
                "0 of 2 scenarios done, 2 to come; about 1 h 0 min left, "
                "and 1 scenario not yet known",
            ),
            (
                # Its baseline's seconds, less what it has run for.
                [selection(a=3600), plan("start"), begin("start", 0)],
                600,
                "0 of 1 scenarios done, 1 running; about 50 min 0 s left",
            ),
            (
                # Steps that are all known are nearer to the truth than a baseline.
                [
                    *(selection(a=3600), plan("start", "start")),
                    *(begin("start", 0), end("start", 60), begin("start", 60)),
                ],
                70,
                "0 of 1 scenarios done, 1 running; about 50 s left",
            ),
            (
                # Two run at once, so that what is to come takes half as long.
                [
                    selection(a=1000, b=1000, c=1000, d=1000),
                    *(begin("start", 0), begin("start", 0, who="b")),
                ],
                0,
                "0 of 4 scenarios done, 2 running, 2 to come; about 33 min 20 s left",
            ),
            (
                # But never less than the longest of them.
                [selection(a=10, b=10, c=1000), begin("x", 0), begin("y", 0, who="b")],
                0,
                "0 of 3 scenarios done, 2 running, 1 to come; about 16 min 40 s left",
            ),
            (
                # As long as those done, where nothing else is known; and that is said.
                [selection(a=None, b=None, c=None), begin("start", 0), over(100)],
                100,
                "1 of 3 scenarios done, 2 to come; about 3 min 20 s left, "
                "2 taken for the mean of those done",
            ),
            (
                [
                    *(selection(a=None, b=None, c=None), note("waiting for a GPU", 0)),
                    *(begin("start", 0, who="b"), end("start", 1, who="b")),
                ],
                5,
                "0 of 3 scenarios done, 1 waiting, 1 between starts, 1 to come; "
                "time left not yet known",
            ),
            ([selection("a", "b", a=5, b=None)], 10, "2 of 2 scenarios done"),
        ],
    )
    def test_the_whole_selection(
        self, events: list[dict[str, Any]], clock: float, told: str
    ) -> None:
        assert fed(*events).total(clock) == told


def test_a_heartbeat_is_one_line() -> None:
    assert heartbeat(["a"]) == "a"
    assert heartbeat(["a", "b", "c", "d"]) == "a | b (and 2 more)"


@each(
    ("seconds", "told"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min"),
     (3599.6, "1 h 0 min"), (8000, "2 h 13 min")],
)  # fmt: skip
def test_spans(seconds: float, told: str) -> None:
    assert span(seconds) == told
