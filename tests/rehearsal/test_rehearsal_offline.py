"""Offline stand-ins: rendered, run and read by perfgate's own code; faults are told apart."""

import json
from pathlib import Path

import pytest
from playing import (
    GPQA,
    GPQA_EVAL,
    MIN_LATENCY,
    QUICKSTART,
    STREAMED,
    UNSTREAMED,
    Ended,
    Stage,
    scenarios,
    staged,
)
from tables import each

from perfgate.clients.base import Offline
from perfgate.clients.trtllm_bench import TrtllmBench
from perfgate.clients.trtllm_quickstart import TrtllmQuickstart
from perfgate.core.errors import RunError
from perfgate.core.failures import classify
from perfgate.core.measurement import Measurement
from perfgate.evaluators.trtllm_eval import TrtllmEval
from perfgate.evaluators.trtllm_gpqa import TrtllmGpqa
from perfgate.rehearsal.faults import FAULTS
from perfgate.scenarios.documented import documented_values
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Measurable

PROGRAMS: dict[str, type[Offline]] = {
    MIN_LATENCY: TrtllmBench,
    STREAMED: TrtllmBench,
    UNSTREAMED: TrtllmBench,
    QUICKSTART: TrtllmQuickstart,
    GPQA: TrtllmGpqa,
    GPQA_EVAL: TrtllmEval,
}
ENDING = [kind for kind in FAULTS.values() if kind.place in ("engine", "answers")]
CLIENT = ["partial", "truncated", "no_metrics", "zero_metrics"]


def what_of(name: str) -> Measurable:
    scenario = scenarios()[name]
    if scenario.workload is not None:
        return scenario.points()[0]
    if scenario.accuracy:
        return scenario.accuracy[0]
    assert scenario.smoke is not None
    return scenario.smoke


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def play(
    stage: Stage, name: str, folder: Path, env: pytest.MonkeyPatch, start: int = 1
) -> tuple[Ended, Measurement | RunError]:
    """All steps of the scenario's first probe, and what its program reads of them."""
    for variable, value in stage.env.items():
        env.setenv(variable, value)
    scenario, what, program = scenarios()[name], what_of(name), PROGRAMS[name]()
    label = what.task if isinstance(what, AccuracyTask) else what.label
    steps = program.steps(scenario, stage.build(scenario), what, stage.locations)
    for step in steps:
        ended = stage.step(step.command, folder, name, label, start)
    try:
        return ended, program.parse(scenario, what, folder)
    except RunError as error:
        return ended, error


@pytest.mark.parametrize("version", [None, "1.0.0", "1.2.0", "1.3.0"])
@pytest.mark.parametrize("name", [MIN_LATENCY, STREAMED, UNSTREAMED])
def test_trtllm_bench_is_read_as_a_whole_measurement(
    tmp_path: Path, env: pytest.MonkeyPatch, name: str, version: str | None
) -> None:
    stage = staged(tmp_path / "stage", version)
    ended, found = play(stage, name, tmp_path / "run", env)
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    point = what_of(name)
    assert isinstance(point, LoadPoint)
    assert found.facts["requests_completed"] == point.requests
    assert ("ttft_mean_ms" in found.metrics) == (name == STREAMED)
    documented = documented_values(scenarios()[name])
    for metric, value in (documented.values if documented else {}).items():
        assert found.metrics[metric] == pytest.approx(value.value, rel=0.03)


@pytest.mark.parametrize("version", [None, "1.0.0", "1.3.0"])
def test_the_printed_report_says_the_same_as_the_json(
    tmp_path: Path, env: pytest.MonkeyPatch, version: str | None
) -> None:
    stage = staged(tmp_path / "stage", version)
    _, from_json = play(stage, STREAMED, tmp_path / "run", env)
    assert isinstance(from_json, Measurement)
    (tmp_path / "run" / "report.json").unlink()
    from_text = TrtllmBench().parse(scenarios()[STREAMED], what_of(STREAMED), tmp_path / "run")
    for name, value in from_text.metrics.items():
        assert value == pytest.approx(from_json.metrics[name], rel=1e-3, abs=1e-3)


def test_labels_are_those_of_the_release(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    old = staged(tmp_path / "old", "0.19.0")
    new = staged(tmp_path / "new", "1.2.0")
    (tmp_path / "data").write_text('{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n')
    words = ["--model", "any", "throughput", "--dataset", "data", "--streaming"]
    before = old.run([old.program("trtllm-bench"), *words], tmp_path).out
    after = new.run([new.program("trtllm-bench"), *words], tmp_path).out
    assert "Per User Output Speed [1/TPOT] (tokens/sec/user):" in before
    assert "Per User Output Speed (tps/user):" in after
    assert "= MACHINE DETAILS" in after
    assert "= MACHINE DETAILS" not in before


@each(
    ("version", "yaml", "share", "shown"),
    [
        ("0.20.0", "", 80.0, "80.00%"),
        ("1.0.0", "kv_cache_config: {dtype: fp8}", 80.0, "80.00%"),  # told, and not in force
        ("1.1.0rc6", "", 0.8, "80.00%"),
        ("1.1.0rc6", "kv_cache_config: {dtype: fp8}", None, "None"),  # replaced the mapping
        ("1.1.0rc6", "kv_cache_config: {free_gpu_memory_fraction: 0.7}", 0.7, "70.00%"),
        ("1.3.0rc3", "kv_cache_config: {dtype: fp8}", 0.8, "80.00%"),
    ],
)
def test_the_share_of_the_kv_cache_is_told_as_the_release_tells_it(
    tmp_path: Path, version: str, yaml: str, share: float | None, shown: str
) -> None:
    stage = staged(tmp_path / "stage", version)
    (tmp_path / "extra.yml").write_text(yaml or "{}")
    (tmp_path / "data").write_text('{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n')
    words = "-m any throughput --dataset data --kv_cache_free_gpu_mem_fraction 0.8 --report_json r"
    words += " --extra_llm_api_options extra.yml"
    ended = stage.run([stage.program("trtllm-bench"), *words.split()], tmp_path)
    assert ended.status == 0, ended.err
    world = json.loads((tmp_path / "r").read_text())["world_info"]
    assert world["kv_cache_percentage"] == pytest.approx(share)
    assert f"KV Memory Percentage:   {shown}\n" in ended.out


def test_quickstart_answers_all_prompts(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    ended, found = play(staged(tmp_path / "stage"), QUICKSTART, tmp_path / "run", env)
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert found.facts["answers"] == 4


@pytest.mark.parametrize("version", ["0.20.0", "1.1.0", "1.3.0rc3"])
def test_trtllm_eval_scores_all_questions_and_later_keeps_the_answers(
    tmp_path: Path, env: pytest.MonkeyPatch, version: str
) -> None:
    ended, found = play(staged(tmp_path / "stage", version), GPQA_EVAL, tmp_path / "run", env)
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert found.facts["questions"] == 198
    (score,) = found.metrics.values()
    kept = [sum(one.values()) / len(one) for one in found.answers.values()]
    assert kept == ([pytest.approx(score, abs=1e-6)] if version == "1.3.0rc3" else [])


@pytest.mark.parametrize("fault", CLIENT)
def test_a_fault_of_trtllm_eval_is_found_by_the_parser(
    tmp_path: Path, env: pytest.MonkeyPatch, fault: str
) -> None:
    stage = staged(tmp_path / "stage", "1.3.0rc3", fault=fault)
    ended, found = play(stage, GPQA_EVAL, tmp_path / "run", env)
    assert ended.status == 0
    assert isinstance(found, RunError)
    assert found.failure == FAULTS[fault].failure


def test_gpqa_scores_all_questions(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    ended, found = play(staged(tmp_path / "stage"), GPQA, tmp_path / "run", env)
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert found.facts["questions"] == 198


@pytest.mark.parametrize("name", [MIN_LATENCY, QUICKSTART, GPQA])
def test_everything_says_that_it_is_synthetic(
    tmp_path: Path, env: pytest.MonkeyPatch, name: str
) -> None:
    ended, _ = play(staged(tmp_path / "stage"), name, tmp_path / "run", env)
    assert "all numbers are synthetic" in ended.err
    report = tmp_path / "run" / "report.json"
    if report.exists():
        assert json.loads(report.read_text())["perfgate_synthetic"] is True


@pytest.mark.parametrize("kind", ENDING, ids=lambda kind: kind.name)
def test_a_fault_of_the_engine_ends_it_with_telling_lines(
    tmp_path: Path, env: pytest.MonkeyPatch, kind
) -> None:
    ended, found = play(
        staged(tmp_path / "stage", fault=kind.name), MIN_LATENCY, tmp_path / "run", env
    )
    assert isinstance(found, RunError)
    if kind.name == "killed":
        assert ended.status == -9
    elif kind.name.startswith("cli_drift"):
        assert ended.status == 2
        assert classify(ended.err.splitlines())[0] == "cli_drift"
    else:
        assert ended.status == 1
        assert classify(ended.err.splitlines())[0] == kind.failure


@pytest.mark.parametrize("fault", CLIENT)
@pytest.mark.parametrize("name", [MIN_LATENCY, STREAMED, QUICKSTART, GPQA])
def test_a_fault_of_the_report_ends_in_0_and_is_found_by_the_parser(
    tmp_path: Path, env: pytest.MonkeyPatch, name: str, fault: str
) -> None:
    ended, found = play(staged(tmp_path / "stage", fault=fault), name, tmp_path / "run", env)
    assert ended.status == 0
    assert isinstance(found, RunError)
    expected = FAULTS[fault].failure
    if name == GPQA and fault == "truncated":  # its whole report is one line, without a half
        expected = "no_metrics"
    if name == QUICKSTART and fault == "zero_metrics":  # its answers are empty
        expected = "broken_output"
    assert found.failure == expected


@pytest.mark.parametrize("fault", ["broken_answers", "wrong_answers"])
def test_answers_of_no_working_model_and_of_no_document(
    tmp_path: Path, env: pytest.MonkeyPatch, fault: str
) -> None:
    ended, found = play(staged(tmp_path / "stage", fault=fault), QUICKSTART, tmp_path / "run", env)
    assert ended.status == 0
    assert isinstance(found, RunError)
    assert found.failure == FAULTS[fault].failure


def test_slower_means_slower_by_as_much(tmp_path: Path, env: pytest.MonkeyPatch) -> None:
    _, well = play(staged(tmp_path / "well"), MIN_LATENCY, tmp_path / "one", env)
    _, slow = play(staged(tmp_path / "slow", fault="slow:8%"), MIN_LATENCY, tmp_path / "two", env)
    assert isinstance(well, Measurement)
    assert isinstance(slow, Measurement)
    for name in ("output_throughput", "output_throughput_per_user"):
        assert slow.metrics[name] == pytest.approx(0.92 * well.metrics[name])


def test_one_metric_of_one_scenario_can_come_out_otherwise(
    tmp_path: Path, env: pytest.MonkeyPatch
) -> None:
    fault = f"scale:{MIN_LATENCY}:output_throughput_per_user=0.5"
    for name, factor in ((MIN_LATENCY, 0.5), (STREAMED, 1.0)):
        _, well = play(staged(tmp_path / f"well-{name}"), name, tmp_path / name, env)
        stage = staged(tmp_path / f"ill-{name}", fault=fault)
        _, scaled = play(stage, name, tmp_path / f"{name}-scaled", env)
        assert isinstance(well, Measurement)
        assert isinstance(scaled, Measurement)
        for metric, value in well.metrics.items():
            hit = factor if metric == "output_throughput_per_user" else 1.0
            assert scaled.metrics[metric] == pytest.approx(hit * value)


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("metric", ["output_throughput", "duration_s", "tpot_median_ms"])
def test_what_follows_from_a_scaled_metric_is_scaled_with_it(
    tmp_path: Path, env: pytest.MonkeyPatch, metric: str, factor: float
) -> None:
    """The parser, which refuses reports that contradict themselves, takes it."""
    fault = f"scale:{STREAMED}:{metric}={factor}"
    _, well = play(staged(tmp_path / "well"), STREAMED, tmp_path / "one", env)
    _, ill = play(staged(tmp_path / "ill", fault=fault), STREAMED, tmp_path / "two", env)
    assert isinstance(well, Measurement)
    assert isinstance(ill, Measurement), ill
    assert ill.metrics[metric] == pytest.approx(factor * well.metrics[metric], rel=1e-3)


def test_a_dataset_that_is_not_there_is_refused(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage")
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--dataset", "nowhere"]
    ended = stage.run(argv, tmp_path)
    assert ended.status == 2
    assert "does not exist" in ended.err
