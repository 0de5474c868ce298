import json
from dataclasses import asdict
from typing import Any

from building import (
    group_record,
    judgement,
    machine,
    outcome,
    with_extra_options,
)

from perfgate.core.errors import RunError
from perfgate.core.failures import FAILURES
from perfgate.core.measured import Change
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.exit_status import ExitStatus
from perfgate.judging.assembly.outcome import Outcome
from perfgate.reports.summary import summary
from perfgate.reports.terminal import terminal_lines

FACTS: dict[str, Any] = {
    "id": "20261105-1",
    "started": "2026-11-05T12:00:00+00:00",
    "machine": json.loads(json.dumps(asdict(machine()))),
}


def recorded(*outcomes: Outcome) -> list[dict[str, Any]]:
    """The verdict records, as they come back from the run folder."""
    return [
        json.loads(json.dumps({"record": "verdict", **outcome.as_record()})) for outcome in outcomes
    ]


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


def test_a_record_of_before_the_numbers_were_kept_is_still_summed_up() -> None:
    (record,) = recorded(outcome())
    del record["measured"], record["build"]
    text = summary(FACTS, [record], ExitStatus.REGRESSION)
    assert "- fresh starts: 2" in section(text, "REGRESSION: `small-serve-c4`")
    assert "Measured" not in text
    assert list(terminal_lines([record], ExitStatus.REGRESSION))


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
    skipped = {
        "record": "skipped",
        "scenario": "big",
        "probe": "c64",
        "reason": "needs 8×B200, found none",
    }
    text = summary(FACTS, [*recorded(outcome(verdict=Verdict.PASS)), skipped], ExitStatus.PASSED)
    assert "Verdicts: 1 PASS, 1 skipped." in text
    assert section(text, "Not run") == ["- `big-c64`: needs 8×B200, found none"]


def test_a_reason_of_several_lines_stays_in_its_place() -> None:
    skipped = {
        "record": "skipped",
        "scenario": "big",
        "probe": "c64",
        "reason": "unknown engine\n  found: sglangg\n  fix: did you mean sglang?",
    }
    text = summary(FACTS, [skipped, {**skipped, "probe": "c128"}], ExitStatus.PASSED)
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
    line["resumed_from"] = "2026-11-21T04:00:00+00:00"
    told = "esumed from the session before, which recorded it 2026-11-21T04:00:00+00:00"
    assert f"R{told}." in summary(FACTS, [line], None)
    assert f"(r{told})" in next(terminal_lines([line], None))[0]


def test_a_line_end_in_a_record_makes_no_entry_of_its_own_on_the_terminal() -> None:
    reason = "none yet\n\x1b[2Kexit status 0: every judged scenario passed"
    (line,) = recorded(outcome(verdict=Verdict.NO_BASELINE, judgements=(), reason=reason))
    first, *rest = next(terminal_lines([line], None))[0].splitlines()
    assert first == "NO_BASELINE    small-serve-c4: none yet"
    assert rest == [15 * " " + "\\x1b[2Kexit status 0: every judged scenario passed"]


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
    late = {
        "record": "skipped",
        "scenario": "big",
        "probe": "c64",
        "why": "budget",
        "reason": "not run: needs about 1 h 10 min, 25 min of --budget 4h are left",
    }
    lacking = {**late, "probe": "c128", "why": "lack", "reason": "needs 8×B200, found none"}
    text = summary(FACTS, [late, lacking], ExitStatus.NOT_JUDGED)
    assert section(text, "Not run for lack of time") == [f"- `big-c64`: {late['reason']}"]
    assert section(text, "Not run") == ["- `big-c128`: needs 8×B200, found none"]


def test_the_starts_of_each_group_have_a_row() -> None:
    text = summary(FACTS, [group_record(), group_record(synthetic=True)], None)
    assert "\nSynthetic starts: 14 made" in text
    lines = section(text, "Fresh starts")
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|")
    assert lines[2] == ("| small-serve | 5 | 7 | 1 | 16 | 28 min | 9 min | 12 min | measured |")
    assert lines[3].startswith("| synthetic small-serve |")


def test_a_resumed_run_says_so() -> None:
    resumed = {
        "record": "resumed",
        "at": "2026-11-05T18:00:00+00:00",
        "groups": ["a"],
        "repeats": ["b", "c"],
    }
    text = summary(FACTS, [resumed], ExitStatus.PASSED)
    assert "Resumed 2026-11-05T18:00:00+00:00: 1 group kept, 2 measured anew." in text


def test_the_commands_of_the_site() -> None:
    facts = {**FACTS, "site_commands": {"before": "set it", "after": "unset it"}}
    told = summary(facts, [], None)
    assert (
        "\nCommands before each start: `set it`\n\nCommands after each start: `unset it`\n" in told
    )
