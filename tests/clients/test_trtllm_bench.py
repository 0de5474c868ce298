"""trtllm-bench as a client: its steps, and whether its report shows what was asked."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trtllm_scenarios
from bench_reports import Run, as_json, as_text
from refusals import refused as refusal
from tables import each

from perfgate.clients.load_files import parsed_offline
from perfgate.clients.trtllm_offline import REPORT, TrtllmBench
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import (
    AccuracyTask,
    EngineSettings,
    GatePolicy,
    Measurable,
    Scenario,
    Smoke,
)

BUILD = EngineBuild("tensorrt-llm", "1.0.0", "abc")
SETTINGS = EngineSettings(
    tp=8,
    ep=8,
    max_batch_size=384,
    max_num_tokens=1536,
    kv_cache_fraction=0.85,
    kv_cache_dtype="fp8",
)
OFFLINE = replace(
    trtllm_scenarios.scenario(
        settings=SETTINGS,
        workload=trtllm_scenarios.offline(75, 100, isl=128, osl=128, warmup_requests=0),
    ),
    gate=GatePolicy(("output_throughput", "total_token_throughput")),
)
(POINT,) = OFFLINE.points()


def with_load(**changes: Any) -> Scenario:
    return replace(OFFLINE, workload=replace(OFFLINE.workload, **changes))


def with_settings(**changes: Any) -> Scenario:
    settings = replace(OFFLINE.engine.settings, **changes)
    return replace(OFFLINE, engine=replace(OFFLINE.engine, settings=settings))


STREAMED = with_load(streaming=True)


def parse(folder: Path, report: object, scenario: Scenario = OFFLINE) -> Measurement:
    (folder / REPORT).write_text(json.dumps(report))
    return parsed_offline(TrtllmBench(), scenario, POINT, folder)


def refused(folder: Path, report: object, scenario: Scenario = OFFLINE) -> RunError:
    return refusal(parse, folder, report, scenario, error=RunError)


def changed(section: str, key: str, value: object) -> dict[str, Any]:
    report = copy.deepcopy(as_json(Run()))
    report[section][key] = value
    return report


@each(
    ("scenario", "what", "told"),
    [
        (OFFLINE, Smoke("trtllm-bench", ("Hi",)), "measures only load"),
        (OFFLINE, AccuracyTask("x", "y", 0), "measures only load"),
    ],
)
def test_what_it_does_not_measure(scenario: Scenario, what: Measurable, told: str) -> None:
    """What it does: tests/data/calls.json."""
    with pytest.raises(InputError, match=told):
        TrtllmBench().steps(scenario, BUILD, what, Locations(on_paper=True))


WORLD = "world_info"
UNQUANTIZED = with_settings(kv_cache_dtype="bf16")
PYTORCH = with_settings(backend="pytorch")
REAL = with_load(dataset="real")


class TestWhatWasAsked:
    def test_a_report_that_shows_it(self, tmp_path: Path) -> None:
        found = parse(tmp_path, as_json(Run()))
        assert found.metrics["output_throughput"] == 6400.0
        asked = {"requests_asked": 100, "concurrency": 75, "seed": POINT.seed}
        assert {name: found.facts[name] for name in asked} == asked

    @each(
        ("report", "scenario", "told"),
        [
            *(
                (changed(WORLD, key, value), OFFLINE, f"found {value}, expected ")
                for key, value in (("tp_size", 4), ("pp_size", 2), ("ep_size", 2))
            ),
            (changed(WORLD, "max_batch_size", 2048), OFFLINE, "found 2048, expected 384"),
            (changed(WORLD, "max_num_tokens", 8192), OFFLINE, "found 8192, expected 1536"),
            (changed("engine", "kv_cache_dtype", None), OFFLINE, "found none, expected fp8"),
            (changed("engine", "kv_cache_dtype", "INT8"), OFFLINE, "found int8, expected fp8"),
            (as_json(Run()), UNQUANTIZED, "found fp8, expected bf16"),
            (changed("engine", "backend", "TRT"), PYTORCH, "found TRT, expected Pytorch"),
            *(
                (changed(WORLD, "kv_cache_percentage", shown), OFFLINE, f"found {share}, expected")
                for shown, share in ((90.0, 0.9), (0.9, 0.9), (1.0, 1.0), (0.0, 0.0))
            ),
            # NVIDIA/TensorRT-LLM#6294: a file called 128_128 had answers of 28 tokens.
            (as_json(Run(osl=28)), OFFLINE, "osl did not take effect: found 28.0, expected 128"),
            (as_json(Run(streaming=True)), OFFLINE, "streaming did not take effect"),
        ],
    )
    def test_a_setting_or_a_length_that_was_ignored(self, tmp_path, report, scenario, told) -> None:
        error = refused(tmp_path, report, scenario)
        assert error.failure == "not_in_force"
        assert told in error.message

    @each(
        ("report", "scenario"),
        [
            (as_json(Run()), PYTORCH),
            (as_json(Run(osl=129)), OFFLINE),
            (as_json(Run(osl=127)), OFFLINE),
            # What was not asked is not checked; an unquantized KV cache is reported as none.
            (
                changed("engine", "kv_cache_dtype", None),
                with_settings(kv_cache_dtype=None, ep=None, max_batch_size=None),
            ),
            *((changed("engine", "kv_cache_dtype", one), UNQUANTIZED) for one in (None, "auto")),
        ],
    )
    def test_what_is_as_asked(self, tmp_path: Path, report: object, scenario: Scenario) -> None:
        assert parse(tmp_path, report, scenario)

    @pytest.mark.parametrize("shown", [85.0, 0.85])
    def test_the_share_of_the_kv_cache_is_percent_up_to_1_0(self, tmp_path, shown) -> None:
        report = changed(WORLD, "kv_cache_percentage", shown)
        assert parse(tmp_path, report).facts["kv_cache_fraction"] == 0.85

    def test_what_was_asked_and_is_not_shown_is_told(self, tmp_path: Path) -> None:
        report = changed(WORLD, "ep_size", None)
        report[WORLD]["kv_cache_percentage"] = None
        facts = parse(tmp_path, report).facts
        assert facts["asked_not_reported"] == ["ep", "kv_cache_fraction"]
        assert "kv_cache_fraction" not in facts

    def test_real_prompts_of_other_lengths_are_another_dataset(self, tmp_path: Path) -> None:
        found = parse(tmp_path, as_json(Run(isl=49)), REAL)
        assert found.facts["dataset_differs"] == "mean ISL 49 tokens, the scenario has 128"
        assert "dataset_differs" not in parse(tmp_path, as_json(Run(isl=120)), REAL).facts

    def test_times_requests_or_a_gating_metric_that_are_missing(self, tmp_path: Path) -> None:
        lacking = as_json(Run())
        del lacking["performance"]["system_total_throughput_tok_s"]
        for report, scenario, failure, told in (
            (as_json(Run()), STREAMED, "no_metrics", "no TTFT and TPOT"),
            (as_json(Run(requests=90)), OFFLINE, "incomplete", "90 of 100"),
            (lacking, OFFLINE, "no_metrics", "total_token_throughput"),
        ):
            error = refused(tmp_path, report, scenario)
            assert (error.failure, told in error.message) == (failure, True)


class TestWhatIsLeft:
    def test_the_printed_report_is_the_fallback(self, tmp_path: Path) -> None:
        (tmp_path / "benchmark.out").write_text(as_text(Run(streaming=True)))
        found = parsed_offline(TrtllmBench(), STREAMED, POINT, tmp_path)
        assert found.metrics["ttft_mean_ms"] == 150.0

    def test_json_is_the_source(self, tmp_path: Path) -> None:
        (tmp_path / "benchmark.out").write_text(as_text(Run(duration_ms=2500.0)))
        assert parse(tmp_path, as_json(Run())).metrics["duration_s"] == 2.0
        assert refused(tmp_path, {"hello": 1}).failure == "no_metrics"

    def test_the_next_step_is_the_one_that_the_log_calls_for(self, tmp_path: Path) -> None:
        log = Path(__file__).parents[1] / "data" / "failures" / "oom.two_ranks.log"
        (tmp_path / "benchmark.err").write_text(log.read_text())
        error = refusal(TrtllmBench().parse, POINT, tmp_path, error=RunError)
        assert error.failure == "oom"
        assert error.hint.startswith("ranks 2 and 6 are on one GPU")
