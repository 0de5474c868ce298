"""What no release of SGLang can honour, and extra options, are refused before any GPU time."""

from dataclasses import replace

import pytest
from sglang_scenarios import ENGINE, TP, build, render, scenario
from tables import each

from perfgate.core.errors import CannotDo, InputError
from perfgate.engines.sglang.engine import SGLang

PROGRAM = "sglang.launch_server"


def test_the_attention_is_divided_into_a_divisor_of_its_ranks() -> None:
    with pytest.raises(CannotDo, match="a divisor of tp 8"):
        SGLang().check(scenario(replace(TP, attention_dp=True, dp=3)), build())


@each("version", ["0.4.6", "0.5.3", "0.5.23"])
@each(
    ("words", "owner"),
    [
        (("--tensor-parallel-size=4",), "engine.settings.tp"),
        (("--tp", "4"), "engine.settings.tp"),  # argparse takes any beginning
        (("--tp_size", "4"), "engine.settings.tp"),
        (("--max-running", "4"), "engine.settings.max_batch_size"),
        (("--cuda-graph-max-bs", "4"), "engine.settings.cuda_graphs"),
        (("--speculative-algorithm", "NGRAM"), "engine.settings.mtp"),
        (("--device", "cpu"), "hardware.gpu"),
        (("--api-key", "made-up"), "without a key"),
        (("--config", "file.yaml"), "engine.extra_args"),
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
