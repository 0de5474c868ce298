import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from building import (
    group_record,
    judgement,
    machine,
    outcome,
    with_extra_options,
)
from made_runs import facts
from msgspec import structs
from plain_records import record

from perfgate.core.errors import RunError
from perfgate.core.failures import FAILURES
from perfgate.core.measured import Change
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


def test_begins_with_how_it_ended_and_where() -> None:
    records = recorded(outcome(), outcome(verdict=Verdict.PASS), outcome(verdict=Verdict.PASS))
    assert summary(FACTS, records, ExitStatus.REGRESSION).splitlines()[:8] == [
        "# perfgate run 20261105-1",
        "",
        "**Exit status 1**: at least one regression of performance or accuracy.",
        "",
        "Verdicts: 1 REGRESSION, 2 PASS.",
        "PASS: no worse than the baseline by the band.",
        "",
        "Machine: node7, 72 cores of Grace, no GPU. Started 2026-11-05T12:00:00+00:00.",
    ]


def test_the_gpus_are_counted_and_named() -> None:
    facts = {**FACTS, "machine": json.loads(json.dumps(asdict(machine("NVIDIA H200"))))}
    text = summary(facts, [], None)
    assert "Machine: node7, 72 cores of Grace, 1×NVIDIA H200. Started" in text


def test_extra_options_stand_beside_the_build() -> None:
    text = summary(FACTS, recorded(outcome(probe=with_extra_options())), None)
    assert "- extra options: `server --workers 4`" in text.splitlines()
    assert "extra options" not in summary(FACTS, recorded(outcome()), None)


def test_a_regression_has_its_table_reasons_and_baseline() -> None:
    both = outcome(judgements=(judgement(), judgement(metric="tpot_mean_ms", change=0.1)))
    text = summary(FACTS, recorded(both), ExitStatus.REGRESSION)
    lines = section(text, "REGRESSION: `small-serve-c4`")
    assert lines[:4] == [
        "| metric | baseline | measured | change | interval | band | verdict |",
        "|---|--:|--:|--:|--:|--:|---|",
        "| output_throughput [tokens/s] | 1234 | 1083 | -12.3 % | -14.0 … -10.5 % | -2.0 % "
        "| REGRESSION |",
        "| tpot_mean_ms [ms] | 1234 | 1083 | +10.0 % | -14.0 … -10.5 % | +2.0 % | REGRESSION |",
    ]
    assert lines[4].startswith("- output_throughput: 12.3 % lower")
    assert lines[6:9] == [
        "- build: llama.cpp 1.3.0, commit def456",
        "- compared with: llama.cpp 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        "- fresh starts: 2",
    ]


MEASURED = [
    "| metric | value | n | change | interval |",
    "|---|--:|--:|--:|--:|",
    "| output_throughput [tokens/s] | 1083 | 2 | -12.3 % | -14.0 … -10.5 % |",
    "| ttft_mean_ms [ms] | 300 | 2 | - | - |",
]


def test_every_measured_metric_is_there_judged_or_not() -> None:
    text = summary(FACTS, recorded(outcome()), ExitStatus.REGRESSION)
    lines = section(text, "REGRESSION: `small-serve-c4`")
    assert lines[-5:] == ["Measured:", *MEASURED]
    assert "\nMeasured values: geometric mean of n fresh starts, of an accuracy the mean; " in text
    observed = (Change("ttft_mean_ms", 200.0, 300.0, 0.5, (0.4, 0.6), 2, 0.01),)
    text = summary(FACTS, recorded(outcome(observed=observed)), ExitStatus.REGRESSION)
    assert "| ttft_mean_ms [ms] | 300 | 2 | +50.0 % | +40.0 … +60.0 % |" in text


def test_a_run_without_a_baseline_shows_its_numbers_too() -> None:
    bare = outcome(
        verdict=Verdict.NO_BASELINE,
        judgements=(),
        reason="there is no baseline yet",
        compared_with="no baseline",
        synthetic=True,
    )
    text = summary(FACTS, recorded(bare), ExitStatus.PASSED)
    assert section(text, "synthetic NO_BASELINE: `small-serve-c4`") == [
        "there is no baseline yet",
        "- build: llama.cpp 1.3.0, commit def456",
        "- compared with: no baseline",
        "- fresh starts: 2",
        "Synthetic values:",
        *(line.replace("-12.3 %", "-").replace("-14.0 … -10.5 %", "-") for line in MEASURED),
    ]


def test_a_verdict_without_measured_values_is_still_summed_up() -> None:
    (line,) = recorded(outcome(measured=(), build=None))
    text = summary(FACTS, [line], ExitStatus.REGRESSION)
    assert "- fresh starts: 2" in section(text, "REGRESSION: `small-serve-c4`")
    assert "Measured" not in text
    assert terminal([line], ExitStatus.REGRESSION)


def test_an_error_shows_evidence_word_for_word_and_the_next_step() -> None:
    error = RunError("oom", "the server ended", evidence=("| CUDA *out* of memory", "Traceback"))
    failed = outcome(verdict=Verdict.ERROR, judgements=(), error=error)
    lines = section(summary(FACTS, recorded(failed), ExitStatus.ERROR), "ERROR: `small-serve-c4`")
    assert lines[:4] == [
        "oom: the server ended",
        "    | CUDA *out* of memory",
        "    Traceback",
        f"Next step: {FAILURES['oom'].next_step}.",
    ]


def test_skipped_is_counted_and_explained() -> None:
    reason = "needs 8×B200, found none"
    skipped = record("skipped", test="t9", scenario="big", probe="c64", reason=reason)
    text = summary(FACTS, [*recorded(outcome(verdict=Verdict.PASS)), skipped], ExitStatus.PASSED)
    assert "Verdicts: 1 PASS, 1 not run." in text
    assert section(text, "Not run") == ["- `big-c64`: needs 8×B200, found none"]


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


def test_what_time_did_not_suffice_for_is_listed_by_itself() -> None:
    big = {"scenario": "big", "probe": "c64"}
    reason = "not run: needs about 1 h 10 min, 25 min of --budget 4h are left"
    late = record("skipped", big, test="t9", why="budget", reason=reason)
    lack = "needs 8×B200, found none"
    lacking = record("skipped", big, test="t8", probe="c128", reason=lack)
    text = summary(FACTS, [late, lacking], ExitStatus.NOT_JUDGED)
    assert section(text, "Not run for lack of time") == [f"- `big-c64`: {reason}"]
    assert section(text, "Not run") == ["- `big-c128`: needs 8×B200, found none"]


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
