"""Offline stand-ins: rendered, run and read by perfgate's own code; faults are told apart."""

import json
from pathlib import Path

import pytest
from playing import (
    DATA,
    GPQA,
    GPQA_EVAL,
    MIN_LATENCY,
    QUICKSTART,
    STREAMED,
    UNSTREAMED,
    Ended,
    Put,
    Stage,
    scenarios,
)
from tables import each

from perfgate.clients.base import Offline
from perfgate.clients.load_files import parsed_offline
from perfgate.clients.trtllm_offline import TrtllmBench, TrtllmQuickstart
from perfgate.core.errors import RunError
from perfgate.core.failures import diagnose
from perfgate.core.measurement import Measurement
from perfgate.evaluators.trtllm_eval import TrtllmEval, TrtllmGpqa
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


def play(
    stage: Stage, name: str, folder: Path, start: int = 1
) -> tuple[Ended, Measurement | RunError]:
    """All steps of the scenario's first probe, and what its program reads of them."""
    scenario, what, program = scenarios()[name], what_of(name), PROGRAMS[name]()
    label = what.task if isinstance(what, AccuracyTask) else what.label
    steps = program.steps(scenario, stage.build(scenario), what, stage.locations)
    for step in steps:
        ended = stage.step(step.command, folder, name, label, start)
    try:
        return ended, parsed_offline(program, scenario, what, folder)
    except RunError as error:
        return ended, error


@each("version", [None, "1.2.0", "1.3.0"])
@each("name", [MIN_LATENCY, STREAMED, UNSTREAMED])
def test_trtllm_bench_is_read_as_a_whole_measurement(
    put: Put, tmp_path: Path, name: str, version: str | None
) -> None:
    stage = put(version)
    ended, found = play(stage, name, tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    point = what_of(name)
    assert isinstance(point, LoadPoint)
    assert found.facts["requests_completed"] == point.requests
    assert ("ttft_mean_ms" in found.metrics) == (name == STREAMED)
    documented = documented_values(scenarios()[name])
    for metric, value in (documented.values if documented else {}).items():
        assert found.metrics[metric] == pytest.approx(value.value, rel=0.03)


@each(
    ("version", "yaml", "logged"),
    [
        ("1.0.0rc1", "print_iter_log: true", True),
        ("1.0.0rc1", "print_iter_log: false", False),
        ("0.20.0", "pytorch_backend_config: {print_iter_log: true}", True),
    ],
)
def test_iterations_are_logged_where_the_file_asks_for_it(
    put: Put, tmp_path: Path, version: str, yaml: str, logged: bool
) -> None:
    stage = put(version)
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "options.yml").write_text(yaml)
    words = ["--model", "any", "throughput", "--dataset", "data"]
    words += ["--extra_llm_api_options", "options.yml"]
    ended = stage.run([stage.program("trtllm-bench"), *words], tmp_path)
    assert ended.status == 0, ended.err
    assert ("[TRT-LLM] [I] iter = 1, global_rank = 0" in ended.out) is logged


@each("version", [None, "1.3.0"])
def test_the_printed_report_says_the_same_as_the_json(
    put: Put, tmp_path: Path, version: str | None
) -> None:
    stage = put(version)
    _, from_json = play(stage, STREAMED, tmp_path / "run")
    assert isinstance(from_json, Measurement)
    (tmp_path / "run" / "report.json").unlink()
    scenario, what = scenarios()[STREAMED], what_of(STREAMED)
    from_text = parsed_offline(TrtllmBench(), scenario, what, tmp_path / "run")
    for name, value in from_text.metrics.items():
        assert value == pytest.approx(from_json.metrics[name], rel=1e-3, abs=1e-3)


def test_labels_are_those_of_the_release(put: Put, tmp_path: Path) -> None:
    old = put("0.19.0")
    new = put("1.2.0")
    (tmp_path / "data").write_text(DATA)
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
    put: Put, tmp_path: Path, version: str, yaml: str, share: float | None, shown: str
) -> None:
    stage = put(version)
    (tmp_path / "extra.yml").write_text(yaml or "{}")
    (tmp_path / "data").write_text(DATA)
    words = "-m any throughput --dataset data --kv_cache_free_gpu_mem_fraction 0.8 --report_json r"
    words += " --extra_llm_api_options extra.yml"
    ended = stage.run([stage.program("trtllm-bench"), *words.split()], tmp_path)
    assert ended.status == 0, ended.err
    world = json.loads((tmp_path / "r").read_text())["world_info"]
    assert world["kv_cache_percentage"] == pytest.approx(share)
    assert f"KV Memory Percentage:   {shown}\n" in ended.out


def test_quickstart_answers_all_prompts(put: Put, tmp_path: Path) -> None:
    ended, found = play(put(), QUICKSTART, tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert found.facts["answers"] == 4


@each("version", ["0.20.0", "1.3.0rc3"])
def test_trtllm_eval_scores_all_questions_and_later_keeps_the_answers(
    put: Put, tmp_path: Path, version: str
) -> None:
    ended, found = play(put(version), GPQA_EVAL, tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert found.facts["questions"] == 198
    (score,) = found.metrics.values()
    kept = [sum(one.values()) / len(one) for one in found.answers.values()]
    assert kept == ([pytest.approx(score, abs=1e-6)] if version == "1.3.0rc3" else [])


def test_gpqa_scores_all_questions(put: Put, tmp_path: Path) -> None:
    ended, found = play(put(), GPQA, tmp_path / "run")
    assert ended.status == 0, ended.err
    assert isinstance(found, Measurement), found
    assert found.facts["questions"] == 198


@each("name", [MIN_LATENCY, QUICKSTART, GPQA])
def test_everything_says_that_it_is_synthetic(put: Put, tmp_path: Path, name: str) -> None:
    ended, _ = play(put(), name, tmp_path / "run")
    assert "all numbers are synthetic" in ended.err
    if name == MIN_LATENCY:
        report = json.loads((tmp_path / "run" / "report.json").read_text())
        assert report["perfgate_synthetic"] is True


@each("kind", ENDING, ids=lambda kind: kind.name)
def test_a_fault_of_the_engine_ends_it_with_telling_lines(put: Put, tmp_path: Path, kind) -> None:
    ended, found = play(put(fault=kind.name), MIN_LATENCY, tmp_path / "run")
    assert isinstance(found, RunError)
    if kind.name == "killed":
        assert ended.status == -9
    elif kind.name.startswith("cli_drift"):
        assert ended.status == 2
        assert diagnose(enumerate(ended.err.splitlines(), start=1)).failure == "cli_drift"
    else:
        assert ended.status == 1
        assert diagnose(enumerate(ended.err.splitlines(), start=1)).failure == kind.failure


@each(
    ("name", "fault", "failure"),
    [
        *((name, one, FAULTS[one].failure) for name in (MIN_LATENCY, GPQA_EVAL) for one in CLIENT),
        (STREAMED, "partial", "incomplete"),
        (QUICKSTART, "partial", "incomplete"),
        (QUICKSTART, "truncated", "truncated_output"),
        (QUICKSTART, "no_metrics", "no_metrics"),
        (QUICKSTART, "zero_metrics", "broken_output"),  # its answers are empty
        (QUICKSTART, "broken_answers", "broken_output"),
        (QUICKSTART, "wrong_answers", FAULTS["wrong_answers"].failure),
        (GPQA, "partial", "incomplete"),
        (GPQA, "truncated", "no_metrics"),  # its whole report is one line, without a half
    ],
)
def test_a_fault_of_the_report_ends_in_0_and_is_found_by_the_parser(
    put: Put, tmp_path: Path, name: str, fault: str, failure: str
) -> None:
    stage = put("1.3.0rc3" if name == GPQA_EVAL else None, fault)
    ended, found = play(stage, name, tmp_path / "run")
    assert ended.status == 0
    assert isinstance(found, RunError)
    assert found.failure == failure


def test_slower_means_slower_by_as_much(put: Put, tmp_path: Path) -> None:
    _, well = play(put(), MIN_LATENCY, tmp_path / "one")
    _, slow = play(put(fault="slow:8%"), MIN_LATENCY, tmp_path / "two")
    assert isinstance(well, Measurement)
    assert isinstance(slow, Measurement)
    for name in ("output_throughput", "output_throughput_per_user"):
        assert slow.metrics[name] == pytest.approx(0.92 * well.metrics[name])


def test_one_metric_of_one_scenario_can_come_out_otherwise(put: Put, tmp_path: Path) -> None:
    fault = f"scale:{MIN_LATENCY}:output_throughput_per_user=0.5"
    for name, factor in ((MIN_LATENCY, 0.5), (STREAMED, 1.0)):
        _, well = play(put(), name, tmp_path / name)
        stage = put(fault=fault)
        _, scaled = play(stage, name, tmp_path / f"{name}-scaled")
        assert isinstance(well, Measurement)
        assert isinstance(scaled, Measurement)
        for metric, value in well.metrics.items():
            hit = factor if metric == "output_throughput_per_user" else 1.0
            assert scaled.metrics[metric] == pytest.approx(hit * value)


@pytest.mark.parametrize(
    ("metric", "factor"),
    [("output_throughput", 1.3), ("duration_s", 0.7), ("tpot_median_ms", 1.3)],
)
def test_what_follows_from_a_scaled_metric_is_scaled_with_it(
    put: Put, tmp_path: Path, metric: str, factor: float
) -> None:
    """The parser, which refuses reports that contradict themselves, takes it."""
    _, well = play(put(), STREAMED, tmp_path / "one")
    _, ill = play(put(fault=f"scale:{STREAMED}:{metric}={factor}"), STREAMED, tmp_path / "two")
    assert isinstance(well, Measurement)
    assert isinstance(ill, Measurement), ill
    assert ill.metrics[metric] == pytest.approx(factor * well.metrics[metric], rel=1e-3)


def test_a_dataset_that_is_not_there_is_refused(put: Put, tmp_path: Path) -> None:
    stage = put()
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--dataset", "nowhere"]
    ended = stage.run(argv, tmp_path)
    assert ended.status == 2
    assert "does not exist" in ended.err
