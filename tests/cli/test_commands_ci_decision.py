"""`perfgate ci decision`: one line for the job's log, and the status that the job ends in."""

import pytest
from command_line import Perfgate
from tables import each

from perfgate.cli.main import main


@each(
    "event, status, word, ends_in",
    [
        ("nightly", "0", "pass", 0),
        ("nightly", "10", "warn", 0),
        ("release", "10", "block", 10),
        ("rehearsal", "13", "pass", 0),
        ("rehearsal", "0", "block", 11),
        ("release", "77", "block", 77),
    ],
)
def test_one_line_and_the_status(event, status, word, ends_in, capsys):
    assert main(["ci", "decision", "--event", event, status]) == ends_in
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert said.startswith(f"{word}: {event}, status {status}: ")


def test_as_json(perfgate: Perfgate):
    found = perfgate.plain("ci decision --event release 10", 10)
    assert found.pop("sentence")
    assert found == {"event": "release", "status": 10, "decision": "block", "exit_status": 10}


@each("status", ["", "-1", "256", "0x0", "٠", "1_0", "0" * 5000])
def test_a_job_that_gave_no_status_cannot_pass(status, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["ci", "decision", "--event", "nightly", status])
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""
