"""Programs are asked with a limit of time."""

import signal
import sys
from pathlib import Path

import pytest
from tables import each
from witnesses import eventually

from perfgate.core.program_query import Answer, NoStatus, ask_here
from perfgate.machine.conditions.processes import began


def test_output_and_status() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    answer = ask_here((sys.executable, "-c", code), 60)
    assert answer == Answer(3, "out\n", "err\n")
    assert (answer.is_good, answer.text) == (False, "out\nerr\n")
    assert answer.trouble == "it ended with status 3: err"
    assert (answer.cause, answer.why, answer.refusal) == (None, "", "")


@each(
    ("code", "shown"),
    [
        ("import sys; print(repr(sys.stdin.read()))", "''\n"),
        ("import os; print(os.environ.get('A'), 'HOME' in os.environ)", "b False\n"),
        (r"import sys; sys.stdout.buffer.write(b'a\xff')", "a\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_no_input_an_environment_of_its_own_and_any_byte(code: str, shown: str) -> None:
    assert ask_here((sys.executable, "-c", code), 60, {"A": "b"}).stdout == shown


def test_too_long() -> None:
    answer = ask_here((sys.executable, "-c", "import time; time.sleep(60)"), 0.5)
    assert answer.status is None
    assert answer.cause is NoStatus.TOO_LONG
    assert answer.text == answer.trouble == f"no answer from {sys.executable} within 0.5 s"


def test_too_long_ends_what_the_program_started(tmp_path: Path) -> None:
    """It holds the output open: who waits for its end would wait for as long as it runs."""
    told = tmp_path / "pid"
    words = f"sleep 300 & echo $! >{told}; wait"
    assert ask_here(("sh", "-c", words), 2).cause is NoStatus.TOO_LONG
    eventually(lambda: not began(int(told.read_text())))


def test_an_interrupt_while_the_program_ends_stays_one() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            ask_here(("sleep", "0.4"), 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_program_that_is_missing_or_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    for name, cause, refusal in (
        ("missing", NoStatus.MISSING, "No such file or directory"),
        ("program", NoStatus.NOT_STARTED, "Permission denied"),
    ):
        answer = ask_here((str(tmp_path / name),), 60)
        assert (answer.status, answer.cause, answer.refusal) == (None, cause, refusal)
        assert str(tmp_path / name) in answer.why
