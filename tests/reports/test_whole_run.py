"""What only the whole run shows: waived losses, warnings, a host that moved altogether."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from building import SCENARIO, SUMS, applied, group_record, judgement, outcome
from made_runs import facts
from tables import each

from perfgate.core.measured import Change, MeasuredBuild, MeasuredControl
from perfgate.core.rule import ControlPolicy, Rule
from perfgate.core.verdict import Against, Verdict
from perfgate.judging.assembly.exit_status import ExitStatus
from perfgate.judging.assembly.judge_input import ControlSources, JudgeInput, Provenance
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.rules.probe import InterleavedTest, MetricTest, PerformanceTest, RunNoise
from perfgate.reports.formats.base import ReportContext
from perfgate.reports.formats.html import HtmlFormat
from perfgate.reports.formats.json import JsonFormat
from perfgate.reports.formats.markdown import MarkdownFormat
from perfgate.reports.outcome_text import resolution
from perfgate.reports.run_report import report_of
from perfgate.reports.summary import summary
from perfgate.reports.terminal import terminal_lines
from perfgate.reports.whole_run import (
    WITHOUT_CONTROLS,
    marked,
    probably_worse,
    starts,
    suspicion,
    waived,
    waiver_faults,
    without_controls,
)
from perfgate.scenarios.probe import load_probes

SPEED = "output_throughput"


def recorded(*outcomes: Outcome) -> list[dict[str, Any]]:
    return [
        json.loads(json.dumps({"record": "verdict", "test": "t", **one.as_record()}))
        for one in outcomes
    ]


def of(number: int, **changes: Any) -> Outcome:
    scenario = replace(SCENARIO, id=f"scenario-{number}")
    return outcome(probe=load_probes(scenario)[0], **changes)


def moved(metric: str, p_value: float) -> Change:
    return Change(metric, 10.0, 12.0, 0.2, (0.1, 0.3), 1, p_value)


def test_of_many_metrics_beside_the_gate_only_the_unlikely_ones_are_warned_of() -> None:
    chance = tuple(moved("itl_p99_ms", p / 20) for p in range(1, 20))
    records = recorded(outcome(observed=(*chance, moved("ttft_p99_ms", 1e-6))))
    ((name, worse),) = probably_worse(records)
    assert (name, worse.metric, worse.change) == ("small-serve-c4", "ttft_p99_ms", 0.2)
    assert probably_worse(recorded(outcome(observed=chance))) == []
    assert probably_worse(recorded(outcome())) == []


def test_of_many_that_got_worse_the_terminal_shows_the_five_likeliest() -> None:
    many = tuple(moved(f"ttft_p9{n}_ms", 1e-6) for n in (0, 5, 9) for _ in range(14))
    surest = moved("duration_s", 1e-9)
    lines = [
        text
        for text, _ in terminal_lines(
            recorded(outcome(observed=(*many, surest), synthetic=True)), None
        )
    ]
    title = "probably worse, though no verdict depends on it (one in ten by chance):"
    start = lines.index(title)
    assert lines[start + 1].split() == ["probe", "metric", "baseline", "measured", "change"]
    first = "synthetic small-serve-c4 duration_s [s] 10 12 +20.0 %"
    assert " ".join(lines[start + 2].split()) == first
    assert lines[start + 7] == "and 38 more in summary.md"
    assert len(lines) == start + 8


def test_a_waived_loss_is_listed_with_its_waiver() -> None:
    records = recorded(outcome(judgements=(judgement(waiver=applied("let through by Ada")),)))
    assert waived(records) == ["small-serve-c4: output_throughput -12.3 %: let through by Ada"]
    assert waived(recorded(outcome())) == []
    (line, _) = next(terminal_lines(records, ExitStatus.PASSED))
    assert "(waived)" in line


def test_waivers_that_do_not_hold_are_told() -> None:
    fault = {"record": "waiver_fault", "kind": "expired", "message": "waivers.yaml:4: expired"}
    assert waiver_faults([fault]) == ["waivers.yaml:4: expired"]
    assert any("waivers.yaml:4" in text for text, _ in terminal_lines([fault], ExitStatus.WAIVERS))


def test_nearly_everything_slower_on_one_host_is_suspicious() -> None:
    slower = [of(number) for number in range(5)]
    assert "5 of 5 scenarios" in suspicion(recorded(*slower))
    steady = judgement(verdict=Verdict.PASS, change=0.001, interval=(-0.01, 0.01))
    mixed = [*slower[:2], *(of(number, judgements=(steady,)) for number in range(2, 5))]
    assert suspicion(recorded(*mixed)) == ""
    played = [replace(one, synthetic=True) for one in slower]
    assert suspicion(recorded(*played)) == ""


def test_the_starts_that_sharing_saved_are_told() -> None:
    told = (
        "starts: 7 made, 1 of them again, 5 planned, 16 without sharing: 9 saved "
        "(about 12 min of 40 min)"
    )
    assert starts([group_record()]) == told
    assert (told, False) in list(terminal_lines([group_record()], ExitStatus.PASSED))
    assert starts([group_record(synthetic=True)]) == f"synthetic {told}"
    assert starts([]) == ""


# Marks, and controls


SHIFTED = judgement(verdict=Verdict.PASS, mark="HOST_SHIFT", controls_used=2)
CONTROL = MeasuredControl("baseline", MeasuredBuild("llama.cpp", "1.2.0", "abc123"), 2)


def test_a_slow_machine_is_told_beside_a_pass() -> None:
    passed = outcome(verdict=Verdict.PASS, judgements=(SHIFTED,), controls=(CONTROL,))
    lines = dict(terminal_lines(recorded(passed), ExitStatus.PASSED))
    first = next(iter(lines))
    assert first.startswith("PASS")
    assert first.endswith("output_throughput -12.3 % (HOST_SHIFT)")
    assert any(
        line.startswith("HOST_SHIFT     small-serve-c4: machine, not build") for line in lines
    )
    assert "control: llama.cpp 1.2.0, commit abc123, 2 starts" in lines
    assert "exit status 0: every judged scenario passed" in lines


def test_each_mark_is_one_line_that_names_few() -> None:
    lost = judgement(mark="NO_CONTROL")
    records = recorded(*(of(number, judgements=(lost, lost)) for number in range(7)))
    ((mark, text),) = marked(records, 2)
    assert (mark, text.partition(":")[0]) == (
        "NO_CONTROL",
        "scenario-0-c1, scenario-1-c1 and 5 more",
    )
    assert text.endswith("no control: the machine is not excluded")
    ((_, whole),) = marked(records)
    assert whole.count("scenario-") == 7
    assert marked(recorded(outcome())) == []


def without(policy: ControlPolicy, why_not: str = "", **changes: Any) -> Outcome:
    missing: dict[Against, str] = {"baseline": why_not} if why_not else {}
    sources = Provenance(controls=ControlSources(policy, {}, missing))
    return outcome(provenance=sources, judgements=(judgement(**changes),))


def every_report(records: list[dict[str, Any]]) -> dict[str, str]:
    run = facts("20261123-1", "01:00")
    report = report_of(run, records, None)
    formats = (MarkdownFormat(), HtmlFormat(), JsonFormat())
    return {
        "summary.md": summary(run, records, None),
        "terminal": "\n".join(text for text, _ in terminal_lines(records, None)),
        **{type(one).__name__: one.render(report, ReportContext()) for one in formats},
    }


@each(
    "judged",
    [
        without("auto", mark="NO_CONTROL"),
        without("auto", "no such image", verdict=Verdict.INCONCLUSIVE),
        without("none", mark="NO_CONTROL"),
        without("none", verdict=Verdict.PASS),
    ],
)
def test_a_run_judged_without_controls_has_other_error_rates(judged: Outcome) -> None:
    assert (
        without_controls(recorded(judged)) == f"1 test judged without controls: {WITHOUT_CONTROLS}"
    )


@each(
    "judged",
    [
        without("auto", verdict=Verdict.PASS),  # no loss was suspected
        without("auto", "it failed twice", verdict=Verdict.INCONCLUSIVE, controls_used=1),
        without("auto", controls_used=2),
        without("required", "no such image", mark="NO_CONTROL", verdict=Verdict.INCONCLUSIVE),
        without("none", metric=SUMS),
        without("none", is_interleaved=True),
        without("none", against="documented"),
        replace(without("none", mark="NO_CONTROL"), synthetic=True),
        outcome(),  # where it comes from is not known
    ],
)
def test_a_run_that_lacked_no_control_has_no_other_error_rates(judged: Outcome) -> None:
    assert without_controls(recorded(judged)) == ""


@each(
    ("test", "told"),
    [
        (InterleavedTest(SPEED, 0.02, [100.0], [99.0]), f"{SPEED} -7.0 %"),
        (InterleavedTest(SPEED, 0.07, [100.0], [99.0]), ""),  # as declared
        (PerformanceTest(SPEED, 0.02, [100.0], [99.0], RunNoise(widen=True)), f"{SPEED} -7.0 %"),
        (PerformanceTest(SPEED, 0.02, [100.0], [99.0]), ""),
    ],
)
def test_the_smallest_loss_that_shows_is_a_band_that_the_noise_widened(
    test: MetricTest, told: str
) -> None:
    given = JudgeInput.of(SCENARIO, "c4", Rule(), tests=[test])
    judged = outcome(judge_input=given, judgements=(judgement(band=0.07, notes=()),))
    assert resolution(recorded(judged, outcome())) == told


def test_every_report_states_which_error_rates_hold_without_controls() -> None:
    for name, text in every_report(recorded(without("auto", mark="NO_CONTROL"))).items():
        assert text.count(f"1 test judged without controls: {WITHOUT_CONTROLS}") == 1, name
    for name, text in every_report(recorded(without("auto", controls_used=2))).items():
        assert "judged without controls" not in text, name


def test_the_error_rates_without_controls_are_those_of_the_simulation() -> None:
    page = Path(__file__).parents[2] / "docs" / "explanation" / "detection.md"
    stated = re.search(r"Without controls that is (\d+ to \d+ of 100)\.", page.read_text("utf-8"))
    assert stated is not None
    assert stated[1] in WITHOUT_CONTROLS
