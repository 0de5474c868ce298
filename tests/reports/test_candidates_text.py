"""What a session says of the candidates that it recorded."""

from typing import Any

import pytest
from msgspec.structs import replace
from plain_records import record

from perfgate.reports.candidates import candidate_lines, ready
from perfgate.runs.record import CandidateRecord


def candidate(sessions: int, file: str = "/c/x.json", **changes: Any) -> CandidateRecord:
    made = CandidateRecord(
        scenario="small-serve",
        hardware="cpu",
        commit="abc",
        file=file,
        sessions=sessions,
        wanted=3,
        again="pytest -m b200 --record",
        synthetic=False,
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("sessions", "text"),
    [
        (1, "1 of 3 sessions; two more: pytest -m b200 --record, on another night or node"),
        (2, "2 of 3 sessions; one more: pytest -m b200 --record, on another night or node"),
        (
            3,
            "3 sessions, enough for a baseline: "
            "perfgate baseline promote /c/x.json --by NAME --reason WHY",
        ),
        (
            9,
            "9 sessions, enough for a baseline: "
            "perfgate baseline promote /c/x.json --by NAME --reason WHY",
        ),
    ],
)
def test_how_far_it_is_and_what_comes_next(sessions: int, text: str) -> None:
    assert list(candidate_lines([candidate(sessions)])) == [f"small-serve: {text}"]


def test_that_of_a_rehearsal_is_promoted_among_rehearsals() -> None:
    (line,) = candidate_lines([candidate(3, synthetic=True)])
    assert "promote --rehearsal /c/x.json --by" in line


def test_enough_is_what_the_last_line_of_a_measured_candidate_says() -> None:
    rehearsed = candidate(3, "/c/y.json", scenario="rehearsed", synthetic=True)
    assert ready([candidate(3), rehearsed]) == ("small-serve",)
    assert ready([candidate(3), candidate(2)]) == ()


def test_a_file_that_a_shell_would_split_is_quoted() -> None:
    (line,) = candidate_lines([candidate(3, "/my files/x.json")])
    assert "promote '/my files/x.json' --by" in line


def test_the_last_word_of_a_resumed_session_counts() -> None:
    lines = [
        candidate(1),
        record("not_recorded", reasons=["a: old"]),
        record("verdict"),
        candidate(2),
        record("not_recorded", reasons=["a: new"]),
        record("noise_kept", files=["/n.json"]),
    ]
    told = list(candidate_lines(lines))
    assert told[0].startswith("small-serve: 2 of 3")
    assert told[1:] == ["not recorded: a: new", "noise: /n.json"]
