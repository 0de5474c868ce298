"""Stage: what a session finds, and what stays when it is over."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from playing import MIN_LATENCY, SERVED, WEIGHED, Put, Stage, scenarios, staged
from tables import each

from perfgate.clients.datasets import gpqa_diamond, real_dataset, sharegpt
from perfgate.core.programs.programs import (
    BENCHMARK_SERVING,
    LM_EVAL,
    SBATCH,
    SRUN,
    TENSORRT_LLM_PYTHON,
    TRTLLM_BENCH,
)
from perfgate.engines.weights import model_facts
from perfgate.rehearsal import playbook as play
from perfgate.rehearsal.faults import Fault
from perfgate.rehearsal.setup import LIMITS, set_up, shortened


@pytest.fixture
def on_stage(put: Put) -> Stage:
    return put(fault="slow:8%")


@pytest.mark.usefixtures("on_stage")
def test_a_stand_in_reads_what_was_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_SCENARIO", MIN_LATENCY)
    monkeypatch.setenv("PERFGATE_PROBE", "c1")
    monkeypatch.setenv("PERFGATE_START", "3")
    found = play.here()
    assert found.fault == Fault("slow", 0.08)
    assert (found.scenario, found.probe, found.start, found.seed) == (MIN_LATENCY, "c1", 3, 7)
    assert found.version == scenarios()[MIN_LATENCY].source.engine_version
    assert list(found.releases) == [found.version]
    assert (found.scenario_part.isl, found.scenario_part.osl, found.scenario_part.gpus) == (
        1024,
        2048,
        8,
    )
    assert found.scenario_part.documented["c1"]["output_throughput"] == pytest.approx(274.4168)


@pytest.mark.usefixtures("on_stage")
def test_without_a_scenario_every_staged_release_is_played() -> None:
    documented = {
        scenario.source.engine_version
        for scenario in scenarios().values()
        if scenario.engine.name == "tensorrt-llm"
    }
    found = play.here()
    assert set(found.releases) == documented
    assert found.version == list(found.releases)[-1]


def test_a_release_that_was_asked_for_is_played_by_all(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("1.3.0")
    monkeypatch.setenv("PERFGATE_SCENARIO", MIN_LATENCY)
    assert play.here().version == "1.3.0"


def test_what_the_launcher_starts_others_with_is_not_played(tmp_path: Path) -> None:
    found = set_up(
        tmp_path,
        [scenarios()[SERVED]],
        engine_version=None,
        fault=None,
        seed=7,
        real=(SRUN, SBATCH),
    )
    for program in (SRUN, SBATCH):
        assert program.variable not in found
        assert not (tmp_path / "bin" / program.executable).exists()
    assert "PERFGATE_HOSTS" not in found
    assert (tmp_path / "bin" / "mpirun").exists()


def test_a_stand_in_on_another_node_finds_the_play_without_the_sessions_variables(put: Put) -> None:
    stage = put("1.3.0")
    words = [stage.program("trtllm-bench"), "--help"]
    env = {"PATH": os.environ["PATH"], "PERFGATE_SCENARIO": MIN_LATENCY}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "a mock program plays trtllm-bench" in done.stderr


def test_outside_of_a_rehearsal_a_stand_in_refuses_to_play(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PERFGATE_REHEARSAL", raising=False)
    with pytest.raises(SystemExit):
        play.here()
    assert "mock" in capsys.readouterr().err


@pytest.mark.usefixtures("on_stage")
def test_programs_are_found_as_always() -> None:
    assert Path(TRTLLM_BENCH.find()[0]).name == "trtllm-bench"
    words = BENCHMARK_SERVING.find()
    assert words[1:] == BENCHMARK_SERVING.arguments
    # lm_eval's version is asked of the interpreter beside it.
    beside = Path(LM_EVAL.find()[0]).parent / "python"
    assert str(beside) == TENSORRT_LLM_PYTHON.find()[0]


@each(
    ("code", "told"),
    [
        ("import importlib.metadata as m; print(m.version('tensorrt_llm'))", "1.0.0rc6"),
        ("from importlib.metadata import version; print(version('lm_eval'))", "0.4.9.1"),
        ("import tensorrt_llm; print(tensorrt_llm.__version__)", "TensorRT-LLM version: 1.0.0rc6"),
    ],
)
def test_the_interpreter_tells_the_played_versions(
    on_stage: Stage, tmp_path: Path, code: str, told: str
) -> None:
    ended = on_stage.run([*TENSORRT_LLM_PYTHON.find(), "-c", code], tmp_path, SERVED)
    assert told in ended.out, ended.err


def test_every_model_is_as_its_scenario_wants_it(put: Put) -> None:
    stage = put()
    locations = stage.locations
    for scenario in scenarios().values():
        if scenario.engine.name == "tensorrt-llm":
            assert model_facts(scenario, locations)["source"] != "hub"
    weights = scenarios()[WEIGHED].model.weights
    assert weights is not None
    facts = model_facts(scenarios()[WEIGHED], locations)
    assert facts["shards"] == weights.shards
    taken = sum(path.stat().st_blocks for path in stage.folder.rglob("*")) * 512
    assert taken < 50 * 2**20  # what looks like hundreds of gigabytes takes no space


def test_every_dataset_is_as_the_clients_want_it(put: Put) -> None:
    locations = put().locations
    assert sharegpt(locations).is_file()
    assert gpqa_diamond(locations).is_file()
    for scenario in scenarios().values():
        load = scenario.workload
        if load is None or load.dataset != "real":
            continue
        lines = real_dataset(scenario, locations).read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        lengths = [len(row["input_ids"]) for row in rows]
        assert sum(lengths) / len(lengths) == load.isl
        assert sum(row["output_tokens"] for row in rows) / len(rows) == load.osl
        assert len(set(lengths)) > 1


def test_a_hang_is_found_in_seconds_and_other_engines_keep_their_limits() -> None:
    served = scenarios()[SERVED]
    assert shortened(served, "oom") == shortened(served) == replace(served, limits=LIMITS)
    assert shortened(served, "hang").limits.silence_s < 10 < LIMITS.silence_s
    other = scenarios()["local-smollm2-serve"]
    assert shortened(other) == other


def test_the_playbook_is_synthetic_and_the_same_the_next_time(tmp_path: Path) -> None:
    cases = [scenarios()[MIN_LATENCY], scenarios()[SERVED]]
    staged(tmp_path / "first", cases=cases)
    first = (tmp_path / "first" / "playbook.json").read_text()
    assert json.loads(first)["perfgate_synthetic"] is True
    staged(tmp_path / "again", cases=cases)
    assert (tmp_path / "again" / "playbook.json").read_text() == first


@each(
    ("version", "numbers"),
    [("1.2.0rc3", (1, 2, 0)), ("99", (99, 0, 0)), ("1.4rc1", (1, 4, 0)), ("v0.5.23", (0, 5, 23))],
)
def test_the_numbers_of_a_release(version: str, numbers: tuple[int, int]) -> None:
    assert play.release_numbers(version) == numbers
