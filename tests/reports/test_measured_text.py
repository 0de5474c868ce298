"""Measured values on the terminal: the main ones, the build, and what they are compared with."""

import json
from dataclasses import replace
from typing import Any

from building import SCENARIO, outcome, with_inert_setting

from perfgate.core.measured import MeasuredBuild
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.measured import measured_metrics
from perfgate.judging.assembly.outcome import Outcome
from perfgate.reports.measured_text import identity_lines, measured_lines
from perfgate.scenarios.probe import load_probes

MANY = measured_metrics(
    [Measurement({"output_throughput": 43146.4, "ttft_mean_ms": 250.0, "duration_s": 12.5})]
)


def recorded(*outcomes: Outcome) -> list[dict[str, Any]]:
    return [
        json.loads(json.dumps({"record": "verdict", "test": "t", **one.as_record()}))
        for one in outcomes
    ]


def first_run(**changes: Any) -> Outcome:
    """An outcome with nothing to compare with."""
    unjudged = outcome(
        verdict=Verdict.NO_BASELINE,
        judgements=(),
        reason="none yet",
        compared_with="no baseline",
        measured=MANY,
    )
    return replace(unjudged, **changes)


def words(line: str) -> str:
    return " ".join(line.split())


def test_a_first_run_shows_the_main_numbers_and_how_many_more_there_are() -> None:
    title, columns, first, second, more = measured_lines(recorded(first_run()))
    assert title == "measured, geometric mean of n fresh starts, of an accuracy the mean:"
    assert columns.split() == ["probe", "metric", "value", "unit", "n"]
    assert words(first) == "small-serve-c4 output_throughput 43,146 tokens/s 1"
    assert words(second) == "small-serve-c4 ttft_mean_ms 250 ms 1"
    assert more == "and 1 more value in summary.md"


def test_what_is_longer_than_a_screen_is_folded() -> None:
    probes = [load_probes(replace(SCENARIO, id=f"scenario-{n}"))[0] for n in range(30)]
    lines = list(measured_lines(recorded(*(first_run(probe=one) for one in probes))))
    assert len(lines) == 1 + 1 + 24 + 1
    assert lines[-1] == "and 66 more values in summary.md"


def test_build_and_baseline_are_told_once() -> None:
    assert list(identity_lines(recorded(first_run(), first_run()))) == [
        "build: llama.cpp 1.3.0, commit def456",
        "compared with: no baseline",
    ]
    assert list(identity_lines(recorded(first_run(build=None, compared_with="")))) == []


def test_of_settings_a_line_of_several_scenarios_is_told_once_and_limits_last() -> None:
    one, other = recorded(with_inert_setting(), with_inert_setting())
    one["settings"] = ["limited: 48 of 1000", *one["settings"]]
    other["scenario"] = "another"
    told = [line for line in identity_lines([one, other]) if line.startswith("setting: ")]
    assert told == [
        f"setting: {SCENARIO.id} and 1 more: {other['settings'][0]}",
        f"setting: {SCENARIO.id}: limited: 48 of 1000",
    ]


def test_of_many_builds_a_few_are_told() -> None:
    builds = [MeasuredBuild("llama.cpp", f"1.{n}", f"1.{n}") for n in range(7)]
    lines = list(identity_lines(recorded(*(first_run(build=one) for one in builds))))
    assert lines[4:6] == ["build: llama.cpp 1.4", "build: 2 more in summary.md"]
