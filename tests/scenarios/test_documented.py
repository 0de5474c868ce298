"""Documented values: each file fits its scenario, and has the document's numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO, SUMS
from documented_set import LAB, documented_suite
from tables import each

from perfgate.core.errors import SeveralInputErrors
from perfgate.core.measurement import MeasuredMetric
from perfgate.judging.assembly.references import documented_metrics
from perfgate.scenarios.documented import (
    Documented,
    DocumentedValue,
    documented_values,
    speed_from,
)
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Claim, Floor, Scenario, Source

ROOT = Path(__file__).parents[2]
SCENARIOS = {scenario.id: scenario for scenario in load_scenarios(ROOT / "scenarios")}
FILES = sorted((ROOT / "baselines" / "documented").glob("*.json"))

# As the documents print them: request rate, output and total token throughput (tokens/s), total
# latency (ms), average request latency (ms), per user, per GPU.
OFFLINE = {
    "b200-r1-fp4-min-latency": "0.1341 274.4168 414.0461 74561.7520 7456.1219 274.7188 34.3021",
    "b200-r1-0528-fp4-fp8kv-max-throughput":
        "21.0675 43146.2042 65100.6376 5443839.8140 332826.9898 6.1806 5393.2755",
    "b200-r1-fp4-fp16kv-max-throughput":
        "17.7657 36384.0838 54576.1257 2766684.9197 172321.7206 11.9263 4548.0105",
    "h200-r1-fp8-min-latency": "0.0772 158.0669 - 129498.2168 12945.9379 158.1196 19.7584",
    "h200-r1-fp8-max-throughput":
        "5.6100 11489.2671 17233.9007 912656.9938 181540.5739 11.3476 1436.1584",
}  # fmt: skip
COLUMNS = (
    *("request_throughput", "output_throughput", "total_token_throughput", "duration_s"),
    *("mean_request_latency_ms", "output_throughput_per_user", "output_throughput_per_gpu"),
)
FP8_SCORES = {"flexible-extract": (0.9538, 0.0058), "strict-match": (0.95, 0.006)}
FP4_SCORES = {"flexible-extract": (0.9462, 0.0062), "strict-match": (0.9447, 0.0063)}
GSM8K = {"b200-r1-0528-fp8-serve": FP8_SCORES, "b200-r1-0528-fp4-serve": FP4_SCORES}


# Of the performance lab, whose numbers test_performance_lab reads from its own words.
LABS = [
    name
    for name, scenario in SCENARIOS.items()
    if scenario.source.document == LAB and "-dp8-" not in name
]


def documented(name: str) -> Documented:
    found = documented_values(SCENARIOS[name])
    assert found is not None
    return found


def numbers(name: str) -> dict[str, float]:
    return {metric: value.value for metric, value in documented(name).values.items()}


# The suite's own files. ---------------------------------------------------------------------


def test_every_file_belongs_to_a_scenario_and_fits_it() -> None:
    assert {file.stem for file in FILES} == {*OFFLINE, *GSM8K, *LABS}
    for file in FILES:
        found, scenario = documented(file.stem), SCENARIOS[file.stem]
        assert (found.scenario, found.source.document) == (scenario.id, scenario.source.document)


@each("name", OFFLINE)
def test_the_blogs_numbers_are_all_there(name: str) -> None:
    expected = {
        metric: float(text) / 1000 if metric == "duration_s" else float(text)
        for metric, text in zip(COLUMNS, OFFLINE[name].split(), strict=True)
        if text != "-"
    }
    assert numbers(name) == pytest.approx(expected, rel=1e-12)
    points = {value.concurrency for value in documented(name).values.values()}
    assert points == {SCENARIOS[name].points()[0].concurrency}


@each("name", GSM8K)
def test_the_recipes_scores_are_all_there(name: str) -> None:
    assert documented(name).values == {
        f"accuracy:gsm8k:exact_match:{filter_name}": DocumentedValue(value, stderr=stderr)
        for filter_name, (value, stderr) in GSM8K[name].items()
    }
    assert set(documented(name).values) <= set(SCENARIOS[name].gate.metrics)


# What gates. -------------------------------------------------------------------------------

_SPEED = ("output_throughput", "total_token_throughput")
_GSM8K = tuple(f"accuracy:gsm8k:exact_match:{one}" for one in ("strict-match", "flexible-extract"))
_ON, _FP8 = "h200-v3-fp8", "h200-r1-fp8"
_B200, _GB200 = "b200-r1-fp4", "gb200-r1-fp4"
_DP8 = " ".join(name for name in SCENARIOS if "-dp8-" in name)
JUDGED: dict[tuple[str, ...], str] = {
    (): f"{_ON}-quickstart {_ON}-mtp-0 {_ON}-mtp-1 {_ON}-mtp-2 {_ON}-mtp-3",
    ("output_throughput_per_user", "mean_request_latency_ms", "acceptance_length"):
        f"{_B200}-min-latency {_FP8}-min-latency",
    (*_SPEED, "mean_request_latency_ms"):
        f"b200-r1-0528-fp4-fp8kv-max-throughput {_B200}-fp16kv-max-throughput "
        f"{_FP8}-max-throughput",
    ("output_throughput", "tpot_mean_ms"):
        f"{_B200}-chunked-context-off {_B200}-chunked-context-on {_B200}-chunked-context-small "
        f"{_FP8}-chunked-context-off {_FP8}-chunked-context-on {_FP8}-chunked-context-small",
    _SPEED:
        f"{_B200}-explore {_FP8}-explore {_GB200}-2node-slurm {_ON}-2node-slurm "
        f"{_GB200}-reasoning-no-streaming {_GB200}-chat-no-streaming "
        f"{_GB200}-summarization-no-streaming {_GB200}-generation-no-streaming",
    (*_SPEED, "tpot_mean_ms"):
        f"{_GB200}-reasoning-streaming {_GB200}-chat-streaming {_GB200}-summarization-streaming "
        f"{_GB200}-generation-streaming {_ON}-deepgemm-on {_ON}-deepgemm-off {_ON}-deepgemm-nvcc "
        f"{_ON}-2node-mpirun {_ON}-2node-deepgemm-on {_ON}-2node-deepgemm-off {_DP8}",
    ("ttft_median_ms", "tpot_median_ms", "itl_median_ms", "e2el_median_ms",
     "total_token_throughput", *_GSM8K):
        "b200-r1-0528-fp4-serve b200-r1-0528-fp8-serve gb200-r1-0528-fp4-wide-ep-serve "
        "h200-r1-0528-fp8-serve",
    ("output_throughput", "tpot_median_ms", "ttft_median_ms"):
        "b200-r1-0528-fp4-serve-no-padding b200-r1-0528-fp4-serve-graphs-1024 "
        f"h200-r1-0528-fp8-serve-8k1k {_ON}-serve",
    (*_SPEED, "ttft_mean_ms", "ttft_median_ms", "tpot_mean_ms", "tpot_median_ms", "itl_mean_ms"):
        " ".join(LABS),
    _GSM8K: f"{_B200}-kv-fp16 {_B200}-kv-fp8 b200-r1-0528-fp4-gsm8k-bos {_ON}-kv-fp8-checkpoint",
    ("output_throughput", *_GSM8K): f"{_ON}-kv-bf16 {_ON}-kv-fp8",
    ("accuracy:gpqa_diamond:accuracy:none",): f"{_ON}-gpqa",
    ("accuracy:gpqa_diamond:exact_match:strict-match",): f"{_ON}-gpqa-eval",
}  # fmt: skip


def test_each_scenario_is_judged_by_these_metrics() -> None:
    suite = {one.id: one.gate.metrics for one in documented_suite().scenarios}
    assert suite == {name: metrics for metrics, names in JUDGED.items() for name in names.split()}


@each("name", [*OFFLINE, *GSM8K, *LABS])
def test_each_documented_value_is_judged_or_its_gap_is_told(name: str) -> None:
    found = documented(name)
    measured = [
        MeasuredMetric(metric, "", 1.1 * one.value, ()) for metric, one in found.values.items()
    ]
    told: set[str] = set()
    for probe in all_probes(SCENARIOS[name]):
        judged = set(probe.gating_metrics())
        lines = documented_metrics(probe, measured)
        told |= judged & {one.metric for one in lines}
        gaps = [line for line in lines if line.metric not in judged]
        told |= {line.metric for line in gaps if line.change == pytest.approx(0.1)}
    assert told == set(found.values)


def test_the_commit_is_told_where_the_blog_gives_it() -> None:
    given = {name: documented(name).source.engine_commit for name in OFFLINE}
    own = {name: SCENARIOS[name].source.engine_commit for name in OFFLINE}
    told = {"b200-r1-0528-fp4-fp8kv-max-throughput", "b200-r1-fp4-fp16kv-max-throughput"}
    assert given == {name: own[name] if name in told else None for name in OFFLINE}
    assert all(given[name] for name in told)


def test_documented_numbers_reach_the_headline() -> None:
    for name in OFFLINE:
        for floor in SCENARIOS[name].floors:
            assert numbers(name)[floor.metric] > floor.value


# What is said of a bad file. ----------------------------------------------------------------

GOOD: dict[str, Any] = {
    "schema_version": 1,
    "scenario": "small-serve",
    "source": {"document": "guide.md", "section": "Results"},
    "values": {
        "output_throughput": {"value": 100, "concurrency": 4},
        SUMS: {"value": 0.9, "stderr": 0.01, "tolerance": 0.03},
    },
}


def changed(**values: Any) -> dict[str, Any]:
    return {**GOOD, "values": {**GOOD["values"], **values}}


def write(place: Path, content: Any) -> Path:
    file = place / f"{SCENARIO.id}.json"
    file.write_text(json.dumps(content))
    return file


def test_a_good_file_gives_its_values(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert documented_values(SCENARIO, tmp_path) == Documented(
        "small-serve",
        Source("guide.md", "Results"),
        {
            "output_throughput": DocumentedValue(100.0, concurrency=4),
            SUMS: DocumentedValue(0.9, tolerance=0.03, stderr=0.01),
        },
    )


def test_nothing_documented_is_no_error(tmp_path: Path) -> None:
    assert documented_values(SCENARIO, tmp_path) is None
    assert documented_values(SCENARIO, tmp_path / "gone") is None


AT_8 = {"value": 1, "concurrency": 8}
GSM8K_SCORE = "accuracy:gsm8k:exact_match:none"
BAD: list[tuple[Any, str]] = [
    ({**GOOD, "scenario": "other"}, "scenario: not the scenario of the file"),
    (changed(output_thruput={"value": 1}), "did you mean output_throughput?"),
    (changed(**{GSM8K_SCORE: {"value": 0.9}}), "score of a task that is not measured"),
    (changed(output_throughput=AT_8),
     "values.output_throughput.concurrency: not a point of the sweep"),
    (changed(output_throughput={"value": 1}),
     "values.output_throughput.concurrency: missing\n  expected: one of 1, 4"),
    (changed(**{SUMS: {"value": 0.9, "concurrency": 1}}), "a score has no sweep point"),
    (changed(output_throughput={"concurrency": 4}), "value: missing"),
    (changed(output_throughput={**AT_8, "value": 0}), "output_throughput.value: out of range"),
    (changed(output_throughput={**AT_8, "unit": "s"}), "output_throughput.unit: unknown field"),
    ({name: part for name, part in GOOD.items() if name != "source"}, "source: missing"),
    ({**GOOD, "schema_version": 2},
     "schema_version: not an allowed value\n  found: 2\n  expected: 1"),
    ({**GOOD, "values": {}}, "values: "),
    ([], "wrong type\n  found: []\n  expected: a mapping"),
]  # fmt: skip


@each(("content", "words"), BAD)
def test_a_bad_file_is_told_with_its_field(content: Any, words: str, tmp_path: Path) -> None:
    file = write(tmp_path, content)
    with pytest.raises(SeveralInputErrors) as caught:
        documented_values(SCENARIO, tmp_path)
    assert all(error.file == file for error in caught.value.errors)
    assert words in str(caught.value)


def test_what_needs_streaming_is_not_documented_without_it(tmp_path: Path) -> None:
    assert SCENARIO.workload is not None
    scenario = replace(SCENARIO, workload=replace(SCENARIO.workload, streaming=False))
    write(tmp_path, changed(tpot_mean_ms={"value": 5, "concurrency": 1}))
    assert documented_values(SCENARIO, tmp_path) is not None
    with pytest.raises(SeveralInputErrors, match="metric does not exist without streaming"):
        documented_values(scenario, tmp_path)


# What the first measured speed can be compared with, so that all is told before. -------------

HERE = replace(SCENARIO, gate=replace(SCENARIO.gate, reference="stored"))
CLAIM = Claim(
    "c", "C", Source("d", "s"), "output_throughput", HERE.id, "better", concurrency=4, value=9.0
)
SCORE = {**GOOD, "values": {SUMS: {"value": 0.5}}}


@each(
    ("scenario", "claims", "written", "compared"),
    [
        (HERE, [], None, "first run"),
        (HERE, [replace(CLAIM, metric=SUMS, concurrency=None)], SCORE, "first run"),
        (replace(HERE, floors=(Floor("output_throughput", 9.0, 4),)), [], None, "document"),
        (HERE, [CLAIM], None, "document"),
        (HERE, [replace(CLAIM, scenario="another")], None, "first run"),
        (HERE, [replace(CLAIM, value=None, versus=HERE.id)], None, "first run"),
        (HERE, [], GOOD, "document"),
        (replace(HERE, gate=replace(HERE.gate, reference="self")), [], None, "machine"),
        (replace(HERE, workload=None), [], None, ""),
    ],
)
def test_the_first_speed_is_compared_with_a_speed(
    scenario: Scenario, claims: list[Claim], written: Any, compared: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PERFGATE_BASELINES", str(tmp_path))
    (tmp_path / "documented").mkdir()
    if written is not None:
        write(tmp_path / "documented", written)
    assert speed_from(scenario, claims) == compared
