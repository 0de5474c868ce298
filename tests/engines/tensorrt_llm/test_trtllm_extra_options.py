"""Extra options in the rendered calls: taken as they are, unless something else says the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tables import each
from trtllm_scenarios import DATASET, ON_PAPER, SERVED, build, check, scenario

import perfgate
from perfgate.core.errors import CannotDo, SeveralInputErrors
from perfgate.core.programs.command import Command
from perfgate.engines.definitions import Definitions
from perfgate.engines.refusal import ExtraOptionRefused
from perfgate.engines.tensorrt_llm import programs
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.engines.tensorrt_llm.table import TABLES
from perfgate.plan.toolchain import registered
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import (
    AccuracyTask,
    CudaGraphs,
    EngineSettings,
    Mtp,
    Scenario,
    Smoke,
    Workload,
)

LOAD = Workload("trtllm-bench", "synthetic", 1000, 1000, (8,), requests=16)
ONLINE = replace(LOAD, client="benchmark_serving", warmup_requests=0)
REUSE = {"kv_cache_config": {"enable_block_reuse": True}}
RELEASES = [table.since for table in TABLES.all()]


def of(settings: EngineSettings | None = None, load: Workload = ONLINE, **extra: Any) -> Scenario:
    made = scenario(release="1.3.0rc3", settings=settings or EngineSettings(), workload=load)
    return replace(made, engine=replace(made.engine, **extra))


def served(one: Scenario, version: str = "1.3.0rc3") -> Command:
    return programs.serve(one, build(version), SERVED, ON_PAPER)


def benched(one: Scenario, version: str = "1.3.0rc3") -> Command:
    return programs.throughput(one, build(version), one.points()[0], DATASET, ON_PAPER)


def tree(command: Command) -> Any:
    return yaml.safe_load(command.files[FILE])


def test_words_stand_behind_all_others_of_their_program() -> None:
    one = of(extra_args={"trtllm-serve": ("--num_postprocess_workers", 4, "--tool_parser", "x y")})
    argv = served(one).argv
    assert argv[-4:] == ("--num_postprocess_workers", "4", "--tool_parser", "x y")
    assert argv[:-4] == served(of()).argv
    other = of(load=LOAD, extra_args={"trtllm-bench": ("--scheduler_policy", "max_utilization")})
    assert benched(other).argv[-2:] == ("--scheduler_policy", "max_utilization")


def test_keys_go_beside_those_of_the_settings() -> None:
    one = of(
        EngineSettings(kv_cache_dtype="fp8", stream_interval=10),
        extra_yaml={**REUSE, "num_postprocess_workers": 4, "scheduler_config": {"a": [1, "b"]}},
    )
    assert tree(served(one)) == {
        "kv_cache_config": {"dtype": "fp8", "enable_block_reuse": True},
        "stream_interval": 10,
        "num_postprocess_workers": 4,
        "scheduler_config": {"a": [1, "b"]},
    }


def test_the_share_of_the_cache_is_not_lost_to_a_file_that_replaces_it() -> None:
    one = of(EngineSettings(kv_cache_fraction=0.8), extra_yaml=REUSE)
    assert tree(served(one)) == {
        "kv_cache_config": {"free_gpu_memory_fraction": 0.8, "enable_block_reuse": True}
    }
    offline = of(load=LOAD, extra_yaml={"kv_cache_config": {"tokens_per_block": 64}})
    assert tree(benched(offline)) == {
        "kv_cache_config": {"enable_block_reuse": False, "tokens_per_block": 64}
    }


def test_a_release_that_merges_the_file_needs_no_second_word() -> None:
    one = of(EngineSettings(kv_cache_fraction=0.8), extra_yaml=REUSE)
    deep = next(table.since for table in reversed(TABLES.all()) if table.yaml_merge == "deep")
    one = replace(one, source=replace(one.source, engine_version=deep))
    assert tree(served(one, deep))["kv_cache_config"] == {"enable_block_reuse": True}


def test_the_program_that_evaluates_takes_them_before_its_task() -> None:
    task = AccuracyTask("trtllm-eval", "gsm8k", fewshot=5)
    extra = {"extra_yaml": REUSE, "extra_args": {"trtllm-eval": ("--tokenizer", "/t")}}
    one = replace(of(**extra), workload=None, accuracy=(task,))
    check(one, build("1.3.0rc3"))
    command = programs.evaluate(one, build("1.3.0rc3"), task, None, ON_PAPER)
    assert command.argv[command.argv.index("gsm8k") - 2 :][:2] == ("--tokenizer", "/t")
    assert tree(command)["kv_cache_config"]["enable_block_reuse"] is True


def test_the_call_knows_which_field_asks_for_what() -> None:
    one = of(extra_yaml=REUSE, extra_args={"trtllm-serve": ("--a", 1, "--b=2")})
    assert served(one).asked_by == {
        "--a": "case.engine.extra_args.trtllm-serve[0]",
        "--b": "case.engine.extra_args.trtllm-serve[2]",
        "kv_cache_config": "case.engine.extra_yaml.kv_cache_config",
        "kv_cache_config.enable_block_reuse": (
            "case.engine.extra_yaml.kv_cache_config.enable_block_reuse"
        ),
    }
    assert served(of()).asked_by == {}


def test_a_key_replaces_a_default_that_is_only_spelled_out() -> None:
    documented = replace(of(extra_yaml={"torch_compile_config": {"enable_userbuffers": False}}))
    documented = replace(documented, source=replace(documented.source, engine_version="1.0.0"))
    assert tree(served(documented))["torch_compile_config"] == {"enable_userbuffers": False}


# What something else says. ------------------------------------------------------------------

SAID = {
    "a setting's key": ({"enable_attention_dp": False}, "attention_dp"),
    "a nested one": ({"kv_cache_config": {"dtype": "fp8"}}, "kv_cache_dtype"),
    "all that is above one": ({"moe_config": "x"}, "moe_"),
    "below one": ({"stream_interval": {"a": 1}}, "stream_interval"),
    "an inverted one": ({"disable_overlap_scheduler": True}, "overlap_scheduler"),
    "an option's": ({"max_batch_size": 4}, "max_batch_size"),
    "a nested option's": (
        {"kv_cache_config": {"free_gpu_memory_fraction": 0.5}}, "kv_cache_fraction"
    ),
    "ranks": ({"tensor_parallel_size": 2}, "tp"),
    "graphs": ({"cuda_graph_config": {"batch_sizes": [1]}}, "cuda_graphs"),
}  # fmt: skip


@each("case", SAID)
def test_a_key_that_a_setting_says_is_refused_set_or_not(case: str) -> None:
    extra, setting = SAID[case]
    with pytest.raises(ExtraOptionRefused, match=rf"fix: use engine\.settings\.{setting}"):
        served(of(extra_yaml=extra))


@pytest.mark.parametrize(
    ("settings", "extra"),
    [
        (EngineSettings(mtp=Mtp(1)), {"speculative_config": {"decoding_type": "Eagle"}}),
        (EngineSettings(torch_compile=True), {"torch_compile_config": {"enable_fullgraph": True}}),
    ],
    ids=["mtp", "torch_compile"],
)
def test_what_says_more_than_a_setting_is_refused_where_that_is_set(
    settings: EngineSettings, extra: dict[str, Any]
) -> None:
    assert tree(served(of(extra_yaml=extra)))
    with pytest.raises(ExtraOptionRefused, match=r"use engine\.settings\."):
        served(of(settings, extra_yaml=extra))


@each("version", RELEASES)
def test_the_spelling_is_that_of_the_release(version: str) -> None:
    graphs = of(EngineSettings(cuda_graphs=CudaGraphs(padding=True)))
    graphs = replace(graphs, source=replace(graphs.source, engine_version=version))
    try:
        written = tree(served(graphs, version))
    except CannotDo as error:
        pytest.skip(str(error))
    one = replace(
        graphs, engine=replace(graphs.engine, settings=EngineSettings(), extra_yaml=written)
    )
    with pytest.raises(ExtraOptionRefused, match="cuda_graphs"):
        served(one, version)


OWN_OPTIONS = [
    *("--host=0.0.0.0", "--config", "--extra-llm-api-options", "--max-batch-size", "--tp_size"),
    *("--tensor_parallel_size", "--backend", "--enable_chunked_prefill", "--grpc"),
    *("--free_gpu_memory_fraction", "--kv_cache_dtype", "--served_model_name"),
]
OWN_OF_BENCH = [
    *("--report_json", "--iteration_log", "--dataset", "--model_path", "--num_requests", "--tp"),
    *("--streaming", "--disable_chunked_context", "--engine_dir", "--eos_id", "--config"),
]


@each("option", OWN_OPTIONS)
def test_an_option_that_is_given_already_is_refused(option: str) -> None:
    with pytest.raises(ExtraOptionRefused) as caught:
        served(of(extra_args={"trtllm-serve": ("--log_level", "info", option, "1")}))
    assert caught.value.field == "case.engine.extra_args.trtllm-serve[2]"
    assert caught.value.hint


@each("option", OWN_OF_BENCH)
def test_an_option_that_trtllm_bench_is_given_already_is_refused(option: str) -> None:
    with pytest.raises(ExtraOptionRefused):
        benched(of(load=LOAD, extra_args={"trtllm-bench": (option, "1")}))


RECORDED = Path(perfgate.__file__).parent / "rehearsal" / "recorded"
PAGES = sorted(RECORDED.glob("tensorrt_llm_*.json"))


@each("page", PAGES, ids=lambda page: page.stem)
def test_every_recorded_spelling_of_an_option_that_is_rendered_is_refused(page: Path) -> None:
    told = msgspec.json.decode(page.read_bytes(), type=Definitions)
    source = replace(of().source, engine_version=told.version)
    online, offline = replace(of(), source=source), replace(of(load=LOAD), source=source)
    for names, one, render in (
        (("trtllm-serve", "trtllm-serve serve"), online, served),
        (("trtllm-bench throughput",), offline, benched),
    ):
        given = {word for word in render(one, told.version).argv if word.startswith("--")}
        options = [o for name in names for o in told.programs.get(name, {}).values()]
        for option in options:
            if not given & set(option.spellings):
                continue
            for spelling in (word for word in option.spellings if word.startswith("--")):
                extra = {names[0].split()[0]: (spelling, "1")}
                with pytest.raises(ExtraOptionRefused):
                    render(replace(one, engine=replace(one.engine, extra_args=extra)), told.version)


@pytest.mark.parametrize("smoke", ["trtllm-quickstart", None])
def test_programs_that_the_scenario_does_not_run(smoke: str | None) -> None:
    first = None if smoke is None else Smoke(smoke, ("Who?",))
    one = replace(of(load=LOAD, extra_args={"trtllm-serve": ("--a",)}), smoke=first)
    with pytest.raises(ExtraOptionRefused) as caught:
        check(one, build("1.3.0rc3"))
    assert caught.value.field == "case.engine.extra_args.trtllm-serve"
    assert caught.value.expected == "trtllm-bench"


def test_the_quick_start_alone_takes_none() -> None:
    one = replace(of(extra_yaml=REUSE), workload=None, smoke=Smoke("trtllm-quickstart", ("Who?",)))
    with pytest.raises(ExtraOptionRefused, match="no program of this scenario"):
        check(one, build("1.3.0rc3"))


# Where a file is read. ----------------------------------------------------------------------

TEXT = """\
schema_version: 1
defaults:
  engine:
    extra_yaml:
      kv_cache_config: {dtype: fp8}
scenarios:
  - id: one
    title: One
    source: {document: plan.md, section: all, engine_version: "1.3.0rc3"}
    hardware: {gpu: B200, gpus: 1}
    model: {name: openai/gpt-oss-120b, precision: mxfp4}
    engine:
      name: tensorrt-llm
      extra_args:
        trtllm-serve:
          - --log_level
          - info
          - --port
          - 9
    workload:
      {client: benchmark_serving, dataset: synthetic, isl: 8, osl: 8, concurrency: 1, requests: 1}
    gate: {metrics: [output_throughput]}
    limits: {start_s: 60, silence_s: 60, total_s: 60}
"""


def test_it_is_refused_with_its_line_where_the_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(TEXT, encoding="utf-8")
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(file, registered())
    assert str(caught.value) == (
        f"{file}:5: defaults.engine.extra_yaml.kv_cache_config.dtype: "
        "already said by another field\n"
        "  found: fp8\n"
        "  expected: what no other field says; this is for engine.settings.kv_cache_dtype\n"
        "  fix: use engine.settings.kv_cache_dtype"
    )
    file.write_text(TEXT.replace("dtype: fp8", "tokens_per_block: 64"), encoding="utf-8")
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(file, registered())
    assert f"{file}:18: scenarios[0].engine.extra_args.trtllm-serve[2]: " in str(caught.value)
    assert "fix: take it out" in str(caught.value)


def test_other_faults_of_the_scenario_are_not_told_as_its_extra_options() -> None:
    one = of(EngineSettings(cpu_threads=1), extra_yaml=REUSE)
    assert list(TensorRTLLM.refused_extras(one)) == []
