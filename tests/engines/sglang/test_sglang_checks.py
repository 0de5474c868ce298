"""What no release of SGLang can honour, and extra options, are refused before any GPU time."""

from dataclasses import replace
from typing import Any

import pytest
from sglang_scenarios import DP, ENGINE, TP, build, render, scenario
from tables import each

from perfgate.core.errors import CannotDo, InputError
from perfgate.engines.sglang.engine import SGLang
from perfgate.scenarios.scenario import CudaGraphs, MoeLoadBalancer

PROGRAM = "sglang.launch_server"


@each(
    ("settings", "field", "words"),
    [
        ({"moe_max_num_tokens": 1024}, "moe_max_num_tokens", "no such limit"),
        ({"moe_load_balancer": MoeLoadBalancer(1, 1)}, "moe_load_balancer", "--enable-eplb"),
        ({"pdl": True}, "pdl", "no such switch"),
        ({"iteration_log": True}, "iteration_log", "by itself"),
        ({"cpu_threads": 2}, "cpu_threads", "SGLANG_CPU_OMP_THREADS_BIND"),
        ({"slowed_percent": 15}, "slowed_percent", "no such switch"),
        ({"backend": "pytorch"}, "backend", "it has one"),
        ({"attention_dp": True, "dp": 3}, "dp", "a divisor of tp 8"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype", "fp8_e4m3"),
        ({"quantization": "fp7"}, "quantization", "w8a8_fp8"),
        (
            {"cuda_graphs": CudaGraphs(enabled=False, max_batch_size=8)},
            "cuda_graphs",
            "nothing else where graphs are off",
        ),
        (
            {"cuda_graphs": CudaGraphs(batch_sizes=(1,), max_batch_size=8)},
            "cuda_graphs",
            "one of them",
        ),
    ],
)
def test_what_sglang_cannot_do_is_refused_with_what_it_can(
    settings: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(CannotDo) as caught:
        SGLang().check(scenario(replace(TP, **settings)), build())
    assert caught.value.field == f"case.engine.settings.{field}"
    assert words in str(caught.value)


def test_attention_dp_alone_is_refused_where_the_server_ends_with_an_error() -> None:
    with pytest.raises(CannotDo, match=r"set dp, e\.g\. to 8"):
        SGLang().check(scenario(DP), build("0.5.1"))
    SGLang().check(scenario(replace(DP, dp=8)), build("0.5.1"))
    SGLang().check(scenario(DP), build("0.5.3"))  # the document's own line


@each("version", ["0.4.6", "0.5.3", "0.5.23"])
@each(
    ("words", "owner"),
    [
        (("--tp-size", "4"), "engine.settings.tp"),
        (("--tensor-parallel-size=4",), "engine.settings.tp"),
        (("--tp", "4"), "engine.settings.tp"),  # argparse takes any beginning
        (("--tp_size", "4"), "engine.settings.tp"),
        (("--model", "other"), "model"),
        (("--tokenizer-path", "other"), "model"),
        (("--max-running", "4"), "engine.settings.max_batch_size"),
        (("--chunked-prefill-size", "4"), "engine.settings.max_num_tokens"),
        (("--cuda-graph-max-bs", "4"), "engine.settings.cuda_graphs"),
        (("--disable-radix-cache",), "engine.settings.kv_cache_reuse"),
        (("--speculative-algorithm", "NGRAM"), "engine.settings.mtp"),
        (("--enable-ep-moe",), "engine.settings.ep"),
        (("--random-seed", "1"), "engine.settings.seed"),
        (("--device", "cpu"), "hardware.gpu"),
        (("--host", "0.0.0.0"), "listen.host"),  # noqa: S104
        (("--api-key", "made-up"), "without a key"),
        (("--config", "file.yaml"), "engine.extra_args"),
        (("--nnodes", "2"), "one server"),
        (("--disaggregation-mode", "decode"), "one server"),
    ],
)
def test_an_extra_option_that_is_said_elsewhere_is_refused_in_every_spelling(
    version: str, words: tuple[str, ...], owner: str
) -> None:
    case = scenario(TP, version, extra_args={PROGRAM: words})
    (problem,) = ENGINE.refused_extras(case)
    assert problem.path == ("engine", "extra_args", PROGRAM, 0)
    assert owner in (problem.expected or "")
    with pytest.raises(InputError, match=r"case\.engine\.extra_args"):
        render(case, version)


def test_any_other_extra_option_stands_behind_what_is_rendered() -> None:
    words = ("--max-total-tokens", 8192, "--enable-metrics", "--page-size=64")
    case = scenario(TP, extra_args={PROGRAM: words})
    assert list(ENGINE.refused_extras(case)) == []
    command = render(case)
    assert command.argv[-4:] == ("--max-total-tokens", "8192", "--enable-metrics", "--page-size=64")
    assert command.asked_by["--page-size"] == f"case.engine.extra_args.{PROGRAM}[3]"


def test_options_of_other_programs_and_files_are_refused() -> None:
    other = scenario(TP, extra_args={"trtllm-serve": ("--x",)})
    (problem,) = ENGINE.refused_extras(other)
    assert (problem.problem, problem.expected) == (
        "not the engine's program",
        f"{PROGRAM}, for `python3 -m {PROGRAM}`",
    )
    (problem,) = ENGINE.refused_extras(scenario(TP, extra_yaml={"a": 1}))
    assert problem.problem == "SGLang is given no settings file"
