"""Options: a stand-in refuses what the release would refuse, in the release's own words."""

import json
from pathlib import Path

import pytest
from help_pages import options_in_help
from playing import DATA, MIN_LATENCY, OLD, SERVED, Ended, Put, Stage
from sizes import sized
from tables import each

from perfgate.core.failures import diagnose
from perfgate.engines.definitions import YAML
from perfgate.rehearsal.recorded_pages import nearest, read

BENCH = "trtllm-bench --model any throughput"
SERVING = "python -m tensorrt_llm.serve.scripts.benchmark_serving"


def ask(stage: Stage, line: str, folder: Path, scenario: str = MIN_LATENCY) -> Ended:
    program, *words = line.split()
    return stage.run([stage.program(program), *words], folder, scenario)


def plain(text: str) -> str:
    """Without the marks that releases of click set differently."""
    return text.replace("option:", "option").replace("'", "")


RELEASES = ["0.19.0", "0.20.0", "1.0.0", "1.1.0rc6", "1.2.0", "1.3.0rc3"]


@pytest.mark.nightly
@each("version", sized(["0.19.0", "1.2.0"], RELEASES))
@each(
    ("program", "line"),
    [
        ("trtllm-bench", "trtllm-bench --help"),
        ("trtllm-bench throughput", f"{BENCH} --help"),
        ("trtllm-serve serve", "trtllm-serve serve --help"),
        ("benchmark_serving", f"{SERVING} --help"),
    ],
)
def test_the_help_page_lists_exactly_the_options_of_the_recorded_page(
    put: Put, tmp_path: Path, version: str, program: str, line: str
) -> None:
    ended = ask(put(version), line, tmp_path)
    assert ended.status == 0
    known = read(nearest("tensorrt-llm", version)[program]).programs[program].values()
    expected = {word for option in known if option.kind != "argument" for word in option.spellings}
    assert options_in_help(ended.out) - {"-h"} == expected | {"--help"}


def test_while_nobody_says_for_which_scenario_all_staged_releases_are_listed(
    put: Put, tmp_path: Path
) -> None:
    of_one = options_in_help(ask(put(), f"{BENCH} --help", tmp_path, OLD).out)
    of_all = options_in_help(ask(put(), f"{BENCH} --help", tmp_path, "").out)
    assert of_one < of_all


def test_a_subcommand_that_the_release_lacks(put: Put, tmp_path: Path) -> None:
    ended = ask(put(), "trtllm-bench -m any prepare-dataset", tmp_path)
    assert ended.status == 2
    assert "No such command 'prepare-dataset'" in ended.err


@pytest.mark.parametrize(("fault", "listed"), [("cli_drift", True), ("cli_drift_help", False)])
def test_an_option_can_drift_at_run_time_alone_or_be_gone_from_the_help_page(
    put: Put, tmp_path: Path, fault: str, listed: bool
) -> None:
    page = ask(put(fault=fault), "trtllm-serve --help", tmp_path, SERVED)
    assert ("--tp_size" in options_in_help(page.out)) is listed
    ended = ask(put(fault=fault), "trtllm-serve model --tp_size 8", tmp_path, SERVED)
    assert ended.status == 2
    assert "No such option --tp_size" in plain(ended.err)


@each(
    ("line", "told"),
    [
        ("trtllm-bench --quicker", "No such option --quicker"),
        ("trtllm-serve model --quicker 1", "No such option --quicker"),
        (f"{BENCH} --stream", "No such option --stream"),
        (f"{BENCH} --backend cpp", "Invalid value for '--backend': 'cpp' is not one of 'pytorch'"),
        (f"{BENCH} --tp 2.5", "Invalid value for '--tp': '2.5' is not a valid integer."),
        (f"{BENCH} --streaming=yes", "Option '--streaming' does not take a value."),
        ("trtllm-bench throughput --help", "Missing option '--model' / '-m'."),
        ("trtllm-bench -m any measure", "No such command 'measure'."),
        ("trtllm-serve", "Missing argument 'MODEL'."),
        (SERVING, "the following arguments are required: --model"),
        (f"{SERVING} --model any --quicker", "unrecognized arguments: --quicker"),
        (f"{SERVING} --dataset-name own", "argument --dataset-name: invalid choice: 'own'"),
        (f"{SERVING} --num-prompts many", "argument --num-prompts: invalid int value: 'many'"),
    ],
)
def test_programs_refuse_as_click_and_argparse_do(
    put: Put, tmp_path: Path, line: str, told: str
) -> None:
    ended = ask(put("1.1.0rc6"), line, tmp_path)
    assert ended.status == 2
    head = "error" if line.startswith(SERVING) else "Error"
    assert plain(f"{head}: {told}") in plain(ended.err)
    if "--quicker" in line:
        assert diagnose(enumerate(ended.err.splitlines(), start=1)).failure == "cli_drift"


def test_a_release_without_a_page_says_whose_options_it_has(put: Put, tmp_path: Path) -> None:
    for version, told in (("1.2.0", True), ("1.1.0rc6", False)):
        ended = ask(put(version), "trtllm-serve serve --help", tmp_path)
        said = (
            f"no option page of {version} is recorded: trtllm-serve serve has the options of 1.1.0"
        )
        assert (said in ended.err) == told


@each(
    ("version", "yaml", "told"),
    [
        ("1.0.0", "cuda_graph_config: {enable_padding: true}", None),
        ("1.0.0", "cuda_graph_config: {padding: true}", "Extra inputs are not permitted"),
        ("1.0.0", "pytorch_backend_config: {use_cuda_graph: true}", "Extra inputs"),
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
    put: Put, tmp_path: Path, version: str, yaml: str, told: str | None
) -> None:
    (tmp_path / "extra.yml").write_text(yaml)
    (tmp_path / "data").write_text(DATA)
    line = f"{BENCH} --dataset data --extra_llm_api_options extra.yml"
    ended = ask(put(version), line, tmp_path)
    assert ended.status == (0 if told is None else 1), ended.err
    if told is not None:
        assert told in ended.err
        assert diagnose(enumerate(ended.err.splitlines(), start=1)).failure == "config_error"


def test_the_python_tells_the_schema_of_the_recorded_page(put: Put, tmp_path: Path) -> None:
    code = (
        "import json; from tensorrt_llm.llmapi.llm_args import TorchLlmArgs as A; "
        "print(json.dumps(A.model_json_schema()))"
    )
    for version, closed in (("0.20.0", False), ("1.1.0rc6", True)):
        stage = put(version)
        ended = stage.run([stage.program("python"), "-c", code], tmp_path)
        schema = json.loads(ended.out.splitlines()[-1])
        page = read(nearest("tensorrt-llm", version)[YAML])
        assert schema["properties"].keys() == (page.keys or {}).keys()
        assert schema["additionalProperties"] is not closed
        assert schema["$defs"]["KvCacheConfig"]["properties"].keys() >= {"free_gpu_memory_fraction"}
