"""Options: a stand-in refuses what the release would refuse, in the release's own words."""

import json
from pathlib import Path

import pytest
from help_pages import options_in_help
from playing import MIN_LATENCY, OLD, SERVED, Stage, staged
from tables import each

from perfgate.core.failures import classify
from perfgate.rehearsal.recorded_pages import YAML, nearest, read


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return staged(tmp_path_factory.mktemp("stage"))


def python(stage: Stage, *words: str) -> list[str]:
    return [stage.program("python"), *words]


CLICK = [
    ["trtllm-bench", "--model", "any", "throughput", "--quicker"],
    ["trtllm-bench", "--quicker"],
    ["trtllm-serve", "model", "--quicker", "1"],
]
ARGPARSE = ["-m", "tensorrt_llm.serve.scripts.benchmark_serving", "--model", "any", "--quicker"]


@pytest.mark.parametrize("words", CLICK, ids=" ".join)
def test_an_unknown_option_ends_a_click_program(
    stage: Stage, tmp_path: Path, words: list[str]
) -> None:
    ended = stage.run([stage.program(words[0]), *words[1:]], tmp_path)
    assert ended.status == 2
    assert "Error: No such option: --quicker" in ended.err
    assert classify(ended.err.splitlines())[0] == "cli_drift"


def test_an_unknown_option_ends_an_argparse_program(stage: Stage, tmp_path: Path) -> None:
    ended = stage.run(python(stage, *ARGPARSE), tmp_path)
    assert ended.status == 2
    assert "error: unrecognized arguments: --quicker" in ended.err
    assert classify(ended.err.splitlines())[0] == "cli_drift"


@each("version", ["0.19.0", "0.20.0", "1.0.0", "1.1.0rc6", "1.2.0", "1.3.0rc3"])
@each(
    ("program", "words"),
    [
        ("trtllm-bench", ["trtllm-bench", "--help"]),
        ("trtllm-bench throughput", ["trtllm-bench", "-m", "any", "throughput", "--help"]),
        ("trtllm-serve serve", ["trtllm-serve", "serve", "--help"]),
        ("benchmark_serving", ["python", *ARGPARSE[:2], "--help"]),
    ],
)
def test_the_help_page_lists_exactly_the_options_of_the_recorded_page(
    tmp_path: Path, version: str, program: str, words: list[str]
) -> None:
    stage = staged(tmp_path / "stage", version)
    ended = stage.run([stage.program(words[0]), *words[1:]], tmp_path)
    assert ended.status == 0
    known = read(nearest("tensorrt-llm", version)[program]).options(program).values()
    expected = {word for option in known if option.kind != "argument" for word in option.spellings}
    assert options_in_help(ended.out) - {"-h"} == expected | {"--help"}


def test_while_nobody_says_for_which_scenario_all_staged_releases_are_listed(
    stage: Stage, tmp_path: Path
) -> None:
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--help"]
    of_one = options_in_help(stage.run(argv, tmp_path, OLD).out)
    of_all = options_in_help(stage.run(argv, tmp_path, scenario="").out)
    assert of_one < of_all


def test_a_subcommand_that_the_release_lacks(stage: Stage, tmp_path: Path) -> None:
    argv = [stage.program("trtllm-bench"), "-m", "any", "prepare-dataset"]
    ended = stage.run(argv, tmp_path, MIN_LATENCY)
    assert ended.status == 2
    assert "No such command 'prepare-dataset'" in ended.err


def test_a_required_option(stage: Stage, tmp_path: Path) -> None:
    ended = stage.run([stage.program("trtllm-bench"), "throughput"], tmp_path)
    assert ended.status == 2
    assert "Missing option '--model'" in ended.err


@pytest.mark.parametrize(
    ("yaml", "status"),
    [
        ("cuda_graph_config: {enable_padding: true}", 0),
        ("cuda_graph_config: {padding: true}", 1),
        ("pytorch_backend_config: {use_cuda_graph: true}", 1),
    ],
)
def test_unknown_keys_of_the_yaml_are_refused_where_the_release_refuses_them(
    stage: Stage, tmp_path: Path, yaml: str, status: int
) -> None:
    (tmp_path / "extra.yml").write_text(yaml)
    (tmp_path / "data").write_text('{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n')
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--dataset", "data"]
    ended = stage.run([*argv, "--extra_llm_api_options", "extra.yml"], tmp_path, MIN_LATENCY)
    assert ended.status == status
    if status:
        assert "Extra inputs are not permitted" in ended.err
        assert classify(ended.err.splitlines())[0] == "config_error"


def test_old_releases_ignore_unknown_keys(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage", "0.21.0")
    (tmp_path / "extra.yml").write_text("made_up: true")
    (tmp_path / "data").write_text('{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n')
    argv = [stage.program("trtllm-bench"), "-m", "any", "throughput", "--dataset", "data"]
    ended = stage.run([*argv, "--extra_llm_api_options", "extra.yml"], tmp_path)
    assert ended.status == 0


def test_an_option_can_drift_at_run_time_alone(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage", fault="cli_drift")
    page = stage.run([stage.program("trtllm-serve"), "--help"], tmp_path, SERVED)
    assert "--tp_size" in options_in_help(page.out)
    ended = stage.run([stage.program("trtllm-serve"), "model", "--tp_size", "8"], tmp_path, SERVED)
    assert ended.status == 2
    assert "No such option: --tp_size" in ended.err


def test_an_option_can_be_gone_from_the_help_page_too(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage", fault="cli_drift_help")
    page = stage.run([stage.program("trtllm-serve"), "--help"], tmp_path, SERVED)
    assert page.status == 0
    assert "--tp_size" not in options_in_help(page.out)


BENCH = ["trtllm-bench", "--model", "any", "throughput"]


@each(
    ("words", "told"),
    [
        (
            [*BENCH, "--backend", "cpp"],
            "Invalid value for '--backend': 'cpp' is not one of 'pytorch'",
        ),
        ([*BENCH, "--tp", "2.5"], "Invalid value for '--tp': '2.5' is not a valid integer."),
        (
            [*BENCH, "--warmup", "--tp"],
            "Invalid value for '--warmup': '--tp' is not a valid integer.",
        ),
        ([*BENCH, "--tp"], "Option '--tp' requires an argument."),
        ([*BENCH, "--streaming=yes"], "Option '--streaming' does not take a value."),
        ([*BENCH, "--stream"], "No such option: --stream Did you mean --streaming?"),
        ([*BENCH, "more"], "Got unexpected extra argument (more)"),
        (["trtllm-bench", "throughput", "--help"], "Missing option '--model' / '-m'."),
        (["trtllm-bench", "-m", "any"], "Missing command."),
        (["trtllm-bench", "-m", "any", "measure"], "No such command 'measure'."),
        (["trtllm-serve"], "Missing argument 'MODEL'."),
        (["trtllm-serve", "model", "--backend", "cpp"], "Invalid value for '--backend': 'cpp'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_click_programs_refuse_as_click_does(tmp_path: Path, words: list[str], told: str) -> None:
    stage = staged(tmp_path / "stage", "1.1.0rc6")
    ended = stage.run([stage.program(words[0]), *words[1:]], tmp_path)
    assert ended.status == 2
    assert f"Error: {told}" in ended.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--dataset-name", "own"], "argument --dataset-name: invalid choice: 'own'"),
        (["--num-prompts", "many"], "argument --num-prompts: invalid int value: 'many'"),
        (["--ran", "1"], "ambiguous option: --ran could match --random-"),
        (["--quicker"], "unrecognized arguments: --quicker"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_argparse_programs_refuse_as_argparse_does(
    tmp_path: Path, words: list[str], told: str
) -> None:
    stage = staged(tmp_path / "stage", "1.1.0rc6")
    ended = stage.run(python(stage, *ARGPARSE[:-1], *words), tmp_path)
    assert ended.status == 2
    assert f"error: {told}" in ended.err


def test_argparse_programs_need_what_they_need(tmp_path: Path) -> None:
    stage = staged(tmp_path / "stage", "1.1.0rc6")
    ended = stage.run(python(stage, *ARGPARSE[:2]), tmp_path)
    assert ended.status == 2
    assert "error: the following arguments are required: --model" in ended.err


def test_a_release_without_a_page_says_whose_options_it_has(tmp_path: Path) -> None:
    for version, told in (("1.2.0", True), ("1.1.0rc6", False)):
        stage = staged(tmp_path / version, version)
        ended = stage.run([stage.program("trtllm-serve"), "serve", "--help"], tmp_path)
        said = (
            f"no option page of {version} is recorded: trtllm-serve serve has the options of 1.1.0"
        )
        assert (said in ended.err) == told


@each(
    ("version", "yaml", "told"),
    [
        ("1.1.0rc6", "moe_config: {backend: FAST}", "Input should be 'CUTLASS', 'CUTEDSL'"),
        ("1.1.0rc6", "kv_cache_config: {type: fp8}", "kv_cache_config.type\n  Extra inputs"),
        ("1.1.0rc6", "speculative_config: {decoding_type: MTP, layers: 3}", "Extra inputs"),
        ("1.3.0rc3", "cuda_graph_config: {padding_enabled: true}", "Extra inputs"),
        ("0.20.0", "pytorch_backend_config: {stream_interval: 2}", "TypeError: PyTorchConfig"),
        ("0.20.0", "kv_cache_config: {dtype: fp8}", None),  # dropped without a word
        ("0.20.0", "made_up: true", None),
        ("1.1.0rc6", "speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}", None),
        ("1.3.0rc3", "moe_config: {backend: DEEPGEMM}", None),
    ],
)
def test_the_yaml_is_refused_as_the_release_refuses_it(
    tmp_path: Path, version: str, yaml: str, told: str | None
) -> None:
    stage = staged(tmp_path / "stage", version)
    (tmp_path / "extra.yml").write_text(yaml)
    (tmp_path / "data").write_text('{"task_id": 0, "input_ids": [1, 2], "output_tokens": 4}\n')
    words = [*BENCH[1:], "--dataset", "data", "--extra_llm_api_options", "extra.yml"]
    ended = stage.run([stage.program("trtllm-bench"), *words], tmp_path)
    assert ended.status == (0 if told is None else 1), ended.err
    if told is not None:
        assert told in ended.err
        assert classify(ended.err.splitlines())[0] == "config_error"


def test_the_python_tells_the_schema_of_the_recorded_page(tmp_path: Path) -> None:
    code = (
        "import json; from tensorrt_llm.llmapi.llm_args import TorchLlmArgs as A; "
        "print(json.dumps(A.model_json_schema()))"
    )
    for version, closed in (("0.20.0", False), ("1.1.0rc6", True)):
        stage = staged(tmp_path / version, version)
        ended = stage.run(python(stage, "-c", code), tmp_path)
        schema = json.loads(ended.out.splitlines()[-1])
        page = read(nearest("tensorrt-llm", version)[YAML])
        assert schema["properties"].keys() == page.yaml_keys().keys()
        assert schema["additionalProperties"] is not closed
        assert schema["$defs"]["KvCacheConfig"]["properties"].keys() >= {"free_gpu_memory_fraction"}
