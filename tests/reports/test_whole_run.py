"""What only the whole run shows: waived losses, warnings, a host that moved altogether."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from building import SCENARIO, SUMS, judgement, outcome
from made_runs import facts
from night_runs import outputs
from tables import each

from perfgate.core.measurement import Change
from perfgate.core.verdict import Against, ControlPolicy, Rule, Verdict
from perfgate.judging.assembly.judge_input import (
    ControlSources,
    JudgeInput,
    MetricTest,
    Outcome,
    Provenance,
)
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.paired import InterleavedTest
from perfgate.judging.rules.performance import PerformanceTest
from perfgate.reports.overview import marked, probably_worse, resolution
from perfgate.reports.run_report import WITHOUT_CONTROLS, RunReport, report_of
from perfgate.reports.run_text import terminal_lines
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import VerdictRecord
from perfgate.scenarios.probe import load_probes

SPEED = "output_throughput"
FACTS = facts("20261123-1", "01:00")


def terminal(made: RunReport, status: ExitStatus | None = None) -> list[str]:
    return [text for text, _ in terminal_lines(made, status)]


def recorded(*outcomes: Outcome) -> list[VerdictRecord]:
    return [one.as_record(f"t{number}") for number, one in enumerate(outcomes)]


def of(number: int, **changes: Any) -> Outcome:
    scenario = replace(SCENARIO, id=f"scenario-{number}")
    return outcome(probe=load_probes(scenario)[0], **changes)


def moved(metric: str, p_value: float) -> Change:
    return Change(metric, 10.0, 12.0, 0.2, (0.1, 0.3), 1, p_value)


def report(*outcomes: Outcome, **more: Any) -> RunReport:
    return replace(report_of(FACTS, recorded(*outcomes)), **more)


def test_of_many_metrics_beside_the_gate_only_the_unlikely_ones_are_warned_of() -> None:
    chance = tuple(moved("itl_p99_ms", p / 20) for p in range(1, 20))
    made = report(outcome(observed=(*chance, moved("ttft_p99_ms", 1e-6))))
    ((result, worse),) = probably_worse(made)
    assert (result.name, worse.metric, worse.change) == ("small-serve-c4", "ttft_p99_ms", 0.2)
    assert probably_worse(report(outcome(observed=chance))) == []
    assert probably_worse(report(outcome())) == []


def test_of_many_that_got_worse_the_terminal_shows_the_likeliest() -> None:
    many = tuple(moved(f"ttft_p9{n}_ms", 1e-6) for n in (0, 5, 9) for _ in range(14))
    lines = terminal(report(outcome(observed=(*many, moved("duration_s", 1e-9)))))
    title = "probably worse, though no verdict depends on it (one in ten by chance):"
    first, *_, more = lines[lines.index(title) + 1 :][:4]
    assert first.strip() == "small-serve-c4: duration_s +20.0 %"
    assert more.strip() == "and 40 more in summary.md"


def test_nearly_everything_slower_on_one_host_is_suspicious() -> None:
    slower = [of(number) for number in range(5)]
    assert "5 of 5 scenarios" in report(*slower).suspicion
    steady = judgement(verdict=Verdict.PASS, change=0.001, interval=(-0.01, 0.01))
    mixed = [*slower[:2], *(of(number, judgements=(steady,)) for number in range(2, 5))]
    assert report(*mixed).suspicion == ""
    played = [replace(one, synthetic=True) for one in slower]
    assert report(*played).suspicion == ""


# Marks, and controls


def test_each_mark_is_one_entry_that_counts_its_tests() -> None:
    lost = judgement(mark="NO_CONTROL")
    made = report(*(of(number, judgements=(lost, lost)) for number in range(7)))
    assert [(mark, len(tests)) for mark, tests in marked(made).items()] == [("NO_CONTROL", 7)]
    told = "scenario-0-c1 and 6 more: no control: the machine is not excluded"
    assert f"NO_CONTROL     {told}" in terminal(made)
    assert marked(report(outcome())) == {}


def without(policy: ControlPolicy, skip_reason: str = "", **changes: Any) -> Outcome:
    missing: dict[Against, str] = {"baseline": skip_reason} if skip_reason else {}
    sources = Provenance(controls=ControlSources(policy, {}, missing))
    return outcome(provenance=sources, judgements=(judgement(**changes),))


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
    told = f"1 test judged without controls: {WITHOUT_CONTROLS}"
    assert report(judged).without_controls == told


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
    assert report(judged).without_controls == ""


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
    assert resolution(report(judged, outcome())) == told


@each("name", ["terminal.txt", "summary.md", "first_screen.txt", "report.md", "report.json"])
@each(("more", "times"), [({"mark": "NO_CONTROL"}, 1), ({"controls_used": 2}, 0)])
def test_every_report_states_which_error_rates_hold_without_controls(
    name: str, more: dict[str, Any], times: int
) -> None:
    text = " ".join(outputs(recorded(without("auto", **more)))[name].split())
    assert text.count(f"1 test judged without controls: {WITHOUT_CONTROLS}") == times


def test_the_error_rates_without_controls_are_those_of_the_simulation() -> None:
    page = Path(__file__).parents[2] / "docs" / "explanation" / "detection.md"
    stated = re.search(r"Without controls that is (\d+ to \d+ of 100)\.", page.read_text("utf-8"))
    assert stated is not None
    assert stated[1] in WITHOUT_CONTROLS
