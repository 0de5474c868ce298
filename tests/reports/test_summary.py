import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from building import (
    group_record,
    machine,
    outcome,
    with_extra_options,
)
from made_runs import facts
from msgspec import structs
from plain_records import record

from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.outcome import Outcome
from perfgate.reports.run_report import report_of
from perfgate.reports.run_text import summary as summary_of
from perfgate.reports.run_text import terminal_lines
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import Record, VerdictRecord

FACTS = {**facts("20261105-1", "12:00"), "started": "2026-11-05T12:00:00+00:00"}


def recorded(*outcomes: Outcome) -> list[VerdictRecord]:
    """The verdict records of outcomes."""
    return [one.as_record(f"t{number}") for number, one in enumerate(outcomes)]


def summary(facts: dict[str, Any], records: Sequence[Record], status: ExitStatus | None) -> str:
    return summary_of(report_of(facts, records), status)


def terminal(records: Sequence[Record], status: ExitStatus | None = None) -> list[str]:
    return [text for text, _ in terminal_lines(report_of(FACTS, records), status)]


def section(text: str, heading: str) -> list[str]:
    """The lines of one second-level section that are not empty."""
    _, _, rest = text.partition(f"\n## {heading}\n")
    assert rest, f"no section {heading!r} in:\n{text}"
    return [line for line in rest.partition("\n## ")[0].splitlines() if line]


def test_the_gpus_are_counted_and_named() -> None:
    facts = {**FACTS, "machine": json.loads(json.dumps(asdict(machine("NVIDIA H200"))))}
    text = summary(facts, [], None)
    assert "Machine: node7, 72 cores of Grace, 1×NVIDIA H200. Started" in text


def test_extra_options_stand_beside_the_build() -> None:
    text = summary(FACTS, recorded(outcome(probe=with_extra_options())), None)
    assert "- extra options: `server --workers 4`" in text.splitlines()
    assert "extra options" not in summary(FACTS, recorded(outcome()), None)


def test_a_verdict_without_measured_values_is_still_summed_up() -> None:
    (line,) = recorded(outcome(measured=(), build=None))
    text = summary(FACTS, [line], ExitStatus.REGRESSION)
    assert "- fresh starts: 2" in section(text, "REGRESSION: `small-serve-c4`")
    assert "Measured" not in text
    assert terminal([line], ExitStatus.REGRESSION)


def test_a_reason_of_several_lines_stays_in_its_place() -> None:
    reason = "unknown engine\n  found: sglangg\n  fix: did you mean sglang?"
    skipped = [
        record("skipped", test=test, scenario="big", probe=probe, reason=reason)
        for test, probe in (("t9", "c64"), ("t8", "c128"))
    ]
    text = summary(FACTS, skipped, ExitStatus.PASSED)
    assert section(text, "Not run") == [
        "- `big-c64`: unknown engine",
        "  found: sglangg",
        "  fix: did you mean sglang?",
        "- `big-c128`: unknown engine",
        "  found: sglangg",
        "  fix: did you mean sglang?",
    ]


def test_what_was_injected_is_said() -> None:
    text = summary(FACTS, recorded(outcome(injected=("a=1", "b=2"))), ExitStatus.REGRESSION)
    assert section(text, "REGRESSION: `small-serve-c4`")[0] == "Injected: a=1, b=2."


def test_synthetic_is_said_before_any_number() -> None:
    warning = "**SYNTHETIC: stand-ins made numbers of this run; it proves nothing.**"
    records = recorded(outcome(verdict=Verdict.PASS), outcome(synthetic=True))
    text = summary(FACTS, records, ExitStatus.PASSED)
    assert text.index(warning) < text.index("Verdicts:")
    assert warning not in summary(FACTS, recorded(outcome()), ExitStatus.PASSED)


def test_a_verdict_of_a_session_before_is_marked_here_and_on_the_terminal() -> None:
    (line,) = recorded(outcome())
    line = structs.replace(line, resumed_from="2026-11-21T04:00:00+00:00")
    told = "esumed from the session before, which recorded it 2026-11-21T04:00:00+00:00"
    assert f"R{told}." in summary(FACTS, [line], None)
    assert f"r{told}" in terminal([line])[1]


def test_a_line_end_in_a_record_makes_no_line_of_its_own_on_the_terminal() -> None:
    reason = "none yet\n\x1b[2Kexit status 0: every judged scenario passed"
    (line,) = recorded(outcome(verdict=Verdict.NO_BASELINE, judgements=(), reason=reason))
    told = "none yet \\x1b[2Kexit status 0: every judged scenario passed"
    assert terminal([line])[0] == f"NO_BASELINE    small-serve-c4: {told}"


def test_a_run_that_has_not_ended_says_so() -> None:
    text = summary(FACTS, recorded(outcome()), None)
    assert "**The run has not ended, or was killed.** What follows had finished." in text
    assert "Exit status" not in text
    assert "## REGRESSION: `small-serve-c4`" in text


def test_a_run_that_has_not_ended_says_how_to_go_on() -> None:
    facts = {**FACTS, "arguments": ["pytest", "-m", "b200", "--gate"]}
    text = summary(facts, [], None)
    assert "To go on with it: `pytest -m b200 --gate --resume=20261105-1`" in text


def test_the_starts_of_each_group_have_a_row() -> None:
    text = summary(FACTS, [group_record(), group_record(synthetic=True)], None)
    assert "\nSynthetic starts: 14 made" in text
    lines = section(text, "Fresh starts")
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|")
    assert lines[2] == ("| small-serve | 5 | 7 | 1 | 16 | 28 min | 9 min | 12 min | measured |")
    assert lines[3].startswith("| synthetic small-serve |")


def test_a_resumed_run_says_so() -> None:
    at = "2026-11-05T18:00:00+00:00"
    resumed = record("resumed", at=at, groups=["a"], repeats=["b", "c"])
    text = summary(FACTS, [resumed], ExitStatus.PASSED)
    assert "Resumed 2026-11-05T18:00:00+00:00: 1 group kept, 2 measured again." in text


def test_the_commands_of_the_site() -> None:
    facts = {**FACTS, "site_commands": {"before": "set it", "after": "unset it"}}
    told = summary(facts, [], None)
    assert (
        "\nCommands before each start: `set it`\n\nCommands after each start: `unset it`\n" in told
    )
