"""What the events of a run say: what runs, what waits, why, and how long the rest will take."""

from typing import Any

from tables import each

from perfgate.runs.progress_state import ProgressState, heartbeat, span


def read(line: str) -> dict[str, Any]:
    """An event as a row writes it: `plan start c1`, `begin start 10`, `note 10 waiting`.

    `b:` before it says whose it is, else it is of `a`.
    """
    who, _, told = line.rpartition(":") if line[1:2] == ":" else ("a", "", line)
    event, *words = told.split()
    plain: dict[str, Any] = {"who": who, "clock": 0.0, "event": event}
    if event == "plan":
        return {**plain, "steps": words}
    if event == "selection":
        seconds = dict(word.split("=") for word in words if "=" in word)
        known = {name: float(text) if text else None for name, text in seconds.items()}
        kept = [word for word in words if "=" not in word]
        return {**plain, "who": "", "seconds": known, "over": kept}
    if event in ("begin", "end"):
        kind, clock = words
        return {**plain, "clock": float(clock), "kind": kind, "detail": f"the {kind}"}
    if event == "over":
        return {**plain, "clock": float(words[0])}
    if event == "note":
        return {**plain, "clock": float(words[0]), "text": " ".join(words[1:])}
    return {**plain, "text": " ".join(words)}


def fed(lines: str) -> ProgressState:
    """The state after the events of a text, with `;` between them."""
    state = ProgressState()
    for line in filter(None, lines.split(";")):
        state.feed(read(line.strip()))
    return state


class TestLines:
    @each(
        ("events", "clock", "lines"),
        [
            ("", 0, []),
            (
                "plan start c1 c4; begin start 10; end start 14; begin c1 14",
                75,
                ["a: step 2 of 3: the c1, for 1 min 1 s, time left not yet known"],
            ),
            (
                # The second start is known to take 4 s, c1 10 s; c4 was never seen.
                "plan start c1; begin start 0; end start 4; begin c1 4; end c1 14;"
                "plan start c1 c4; begin start 14",
                17,
                ["a: step 3 of 5: the start, for 3 s, about 11 s left and 1 step not yet timed"],
            ),
            (
                # A step that takes too long takes nothing from those after it.
                "plan start c1; begin start 0; end start 4; begin c1 4; end c1 14;"
                "plan start c1; begin start 14",
                114,
                ["a: step 3 of 4: the start, for 1 min 40 s, about 10 s left"],
            ),
            (
                # The mean of what was seen.
                "plan c1 c1 c1; begin c1 0; end c1 10; begin c1 10; end c1 30; begin c1 30",
                31,
                ["a: step 3 of 3: the c1, for 1 s, about 14 s left"],
            ),
            (
                # What one campaign learns serves the other.
                "b:plan c1; b:begin c1 0; b:end c1 60; plan c1; begin c1 60",
                60,
                ["a: step 1 of 1: the c1, for 0 s, about 1 min 0 s left"],
            ),
            (
                # Two at once, and a clock that was set back.
                "plan c1; begin c1 0; b:plan c1; b:begin c1 9",
                2,
                [
                    "a: step 1 of 1: the c1, for 2 s, time left not yet known",
                    "b: step 1 of 1: the c1, for 0 s, time left not yet known",
                ],
            ),
            (
                "plan start; note 10 waiting for 8 GPUs, leased by ada",
                75,
                ["a: waiting for 8 GPUs, leased by ada, for 1 min 5 s"],
            ),
            (
                # It waits no longer.
                "plan start; note 10 waiting; begin start 20",
                21,
                ["a: step 1 of 1: the start, for 1 s, time left not yet known"],
            ),
            (
                "plan start; begin start 20; note 80 job 7 has waited 60 s",
                81,
                [
                    "a: step 1 of 1: the start, for 1 min 1 s, time left not yet known; "
                    "job 7 has waited 60 s"
                ],
            ),
            ("begin start 0; over 5", 6, []),
        ],
    )
    def test_what_is_at_work(self, events: str, clock: float, lines: list[str]) -> None:
        assert fed(events).lines(clock) == lines

    def test_why_a_start_is_made_stays_while_it_runs(self) -> None:
        why = "start 2: again, as start 1 was disturbed: other processes used 30 % of 2 cores"
        events = f"plan start c1; again {why}; begin start 0"
        assert fed(events).reasons(1)[0][1] == why
        events += "; end start 3; begin c1 3"
        assert fed(events).reasons(4)[0][1] == why
        events += "; plan start; begin start 5"
        assert fed(events).reasons(6)[0][1] == ""

    def test_a_hostile_name_of_a_program_is_text_on_one_line(self) -> None:
        hostile = {"who": "a", "clock": 0.0, "text": "by \x1b[2J\r\n\u202eevil"}
        state = ProgressState()
        assert state.feed({**hostile, "event": "again"}) == "a: by \\x1b[2J \\u202eevil"
        assert state.feed({**hostile, "event": "note"}) == "a: by \\x1b[2J \\u202eevil"
        ((line, why),) = state.reasons(0)
        assert (line, why) == ("a: by \\x1b[2J \\u202eevil, for 0 s", "by \\x1b[2J \\u202eevil")


class TestNews:
    def test_each_step_each_wait_and_each_reason_is_one_line(self) -> None:
        state = ProgressState()
        for event, told in (
            ("selection a= b=", "0 of 2 scenarios done, 2 to come; time left not yet known"),
            ("plan c1 c4", None),
            ("note 0 waiting for 1 GPU", "a: waiting for 1 GPU"),
            ("begin c1 0", "a: step 1 of 2: the c1, time left not yet known"),
            ("end c1 4", None),
            ("end c1 4", None),
            ("again start 2: as start 1 was disturbed", "a: start 2: as start 1 was disturbed"),
            ("over 64", "a: done in 1 min 4 s"),
            ("b:over 64", "b: not measured"),
        ):
            assert state.feed(read(event)) == told

    def test_the_count_of_what_is_done_goes_with_it(self) -> None:
        events = "selection c a= b= c="
        assert fed(events).count() == "[1/3] "
        assert fed(f"{events}; begin start 0; over 9; e:over 9").count() == "[2/3] "
        without_a_selection = fed("begin start 0")
        assert (without_a_selection.count(), without_a_selection.total(1)) == ("", "")


@each(
    ("events", "clock", "told"),
    [
        ("selection a=3600 b=7200", 0, "2 to come; about 3 h 0 min left"),
        (
            "selection a=3600 b=",
            0,
            "2 to come; about 1 h 0 min left, and 1 scenario not yet known",
        ),
        # Its baseline's seconds, less what it has run for.
        (
            "selection a=3600; plan start; begin start 0",
            600,
            "1 running; about 50 min 0 s left",
        ),
        # Steps that are all known are nearer to the truth than a baseline.
        (
            "selection a=3600; plan start start; begin start 0; end start 60; begin start 60",
            70,
            "1 running; about 50 s left",
        ),
        # Two run at once, so that what is to come takes half as long.
        (
            "selection a=1000 b=1000 c=1000 d=1000; begin start 0; b:begin start 0",
            0,
            "2 running, 2 to come; about 33 min 20 s left",
        ),
        # But never less than the longest of them.
        (
            "selection a=10 b=10 c=1000; begin x 0; b:begin y 0",
            0,
            "2 running, 1 to come; about 16 min 40 s left",
        ),
        # As long as those done, where nothing else is known; and that is said.
        (
            "selection a= b= c=; begin start 0; over 100",
            100,
            "2 to come; about 3 min 20 s left, 2 taken for the mean of those done",
        ),
        (
            "selection a= b= c=; note 0 waiting for a GPU; b:begin start 0; b:end start 1",
            5,
            "1 waiting, 1 between starts, 1 to come; time left not yet known",
        ),
        ("selection a b a=5 b=", 10, "2 of 2 scenarios done"),
    ],
)
def test_the_whole_selection(events: str, clock: float, told: str) -> None:
    whole = fed(events).total(clock)
    assert whole.partition(" scenarios done, ")[2] == told or whole == told


def test_a_heartbeat_is_one_line() -> None:
    assert heartbeat(["a"]) == "a"
    assert heartbeat(["a", "b", "c", "d"]) == "a | b (and 2 more)"


@each(
    ("seconds", "told"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (3600, "1 h 0 min")]
    + [(3599.6, "1 h 0 min"), (8000, "2 h 13 min")],
)
def test_spans(seconds: float, told: str) -> None:
    assert span(seconds) == told
