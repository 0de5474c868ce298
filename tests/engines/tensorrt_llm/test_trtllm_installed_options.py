"""Options are checked against what the installed programs say of themselves."""

import sys
from pathlib import Path

import pytest
from trtllm_scenarios import CASES, build, render

from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.core.locations import Locations
from perfgate.core.program_query import Answer
from perfgate.engines.tensorrt_llm import program_output
from perfgate.engines.tensorrt_llm.checkout import script
from perfgate.engines.tensorrt_llm.installed_options import (
    calls,
    missing_options,
    options_in_help,
    verify,
)
from perfgate.engines.tensorrt_llm.releases.table import (
    BENCH,
    BENCHMARK_SERVING,
    PREPARE,
    PREPARE_SCRIPT,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
)

CLICK = """\
[TensorRT-LLM] TensorRT-LLM version: 1.1.0
Usage: trtllm-bench throughput [OPTIONS]

  Run a throughput test on a TRT-LLM engine; --not_declared is only spoken of.

Options:
  Engine run configuration.:      Runtime settings.
    --backend [pytorch|tensorrt]  The backend to use for benchmark.
    --config, --extra_llm_api_options TEXT
                                  Path to a YAML file that overwrites, like --mentioned.
    --enable_chunked_context / --disable_chunked_context
                                  Enable/disable chunking in prefill stage.
  -m, --model TEXT                The Huggingface name.  [required]
  --help                          Show this message and exit.
"""
ARGPARSE = """\
usage: quickstart_advanced.py [-h] --model_dir MODEL_DIR [--prompt PROMPT [PROMPT ...]]

options:
  -h, --help            show this help message and exit
  --model_dir MODEL_DIR
                        Model checkpoint directory.
  --draft_model_dir DRAFT_MODEL_DIR, --eagle_model_dir DRAFT_MODEL_DIR
"""


class TestHelp:
    def test_of_click(self) -> None:
        assert options_in_help(CLICK) == {
            "--backend",
            "--config",
            "--extra_llm_api_options",
            "--enable_chunked_context",
            "--disable_chunked_context",
            "-m",
            "--model",
            "--help",
        }

    def test_of_argparse(self) -> None:
        assert options_in_help(ARGPARSE) == {
            "-h",
            "--help",
            "--model_dir",
            "--draft_model_dir",
            "--eagle_model_dir",
        }


class TestMissing:
    def test_are_told_once_in_their_order(self) -> None:
        given = ("--tp", "8", "--new=1", "--old", "--new", "2")
        assert missing_options(given, frozenset({"--tp"})) == ("--new", "--old")

    def test_a_negative_number_is_a_value(self) -> None:
        known = frozenset({"--concurrency"})
        assert missing_options(("--concurrency", "-1"), known) == ()


def programs(argv: tuple[str, ...]) -> list[str]:
    return [call.program for call in calls(argv)]


class TestCalls:
    def test_the_benchmark_has_options_on_both_sides_of_its_subcommand(self) -> None:
        top, sub = calls(("trtllm-bench", "--model", "m", "throughput", "--tp", "8"))
        assert (top.program, top.help) == (BENCH, ("trtllm-bench", "--help"))
        assert top.arguments == ("--model", "m")
        assert (sub.program, sub.arguments) == (THROUGHPUT, ("--tp", "8"))
        assert sub.help == ("trtllm-bench", "--model", "any", "throughput", "--help")

    def test_a_generators_options_are_not_asked_for(self) -> None:
        """Its group would load a tokenizer before it shows them."""
        argv = ("trtllm-bench", "--model", "m", "prepare-dataset", "--output", "f")
        *_, sub = calls((*argv, "token-norm-dist", "--input-mean", "1"))
        assert (sub.program, sub.arguments) == (PREPARE, ("--output", "f"))

    def test_scripts(self) -> None:
        script = "/src/benchmarks/cpp/prepare_dataset.py"
        (call,) = calls(("python", script, "--stdout", "token-norm-dist", "--input-mean", "1"))
        assert (call.program, call.help) == (PREPARE_SCRIPT, ("python", script, "--help"))
        assert call.arguments == ("--stdout",)
        assert programs(("python3", "examples/quickstart_advanced.py", "--model_dir", "m")) == [
            QUICKSTART
        ]

    def test_a_script_keeps_all_words_that_run_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_TENSORRT_LLM", f"{sys.executable} -u -E")
        python = (str(Path(sys.executable).absolute()), "-u", "-E")
        (call,) = calls(("mpirun", *python, "quickstart_advanced.py", "--model_dir", "m"))
        assert call.help == (*python, "quickstart_advanced.py", "--help")

    def test_the_server_and_its_client(self) -> None:
        (server,) = calls(("trtllm-serve", "model", "--tp_size", "8"))
        assert (server.program, server.help) == (SERVE, ("trtllm-serve", "serve", "--help"))
        module = "tensorrt_llm.serve.scripts.benchmark_serving"
        (client,) = calls(("python", "-m", module, "--model", "m"))
        assert (client.program, client.arguments) == (BENCHMARK_SERVING, ("--model", "m"))

    def test_a_launcher_may_stand_before(self) -> None:
        launcher = ("mpirun", "-n", "16", "--unknown", "trtllm-llmapi-launch")
        bench = ("trtllm-bench", "--model", "m", "throughput", "--tp", "16")
        assert calls((*launcher, *bench)) == calls(bench)

    def test_a_shell_may_stand_between(self) -> None:
        line = "trtllm-llmapi-launch trtllm-bench --model m throughput --tp 16"
        argv = ("srun", "-N", "2", "bash", "-c", line)
        assert calls(argv) == calls(("trtllm-bench", "--model", "m", "throughput", "--tp", "16"))

    def test_a_full_path_is_the_same_program(self) -> None:
        assert programs(("/opt/bin/trtllm-serve", "model")) == [SERVE]

    def test_a_program_of_many_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_SERVE", f"{sys.executable} -m standin")
        argv = (str(Path(sys.executable).absolute()), "-m", "standin", "model", "--port", "1")
        (call,) = calls(argv)
        assert (call.program, call.arguments) == (SERVE, ("model", "--port", "1"))

    def test_other_programs_are_none_of_ours(self) -> None:
        assert calls(("lm_eval", "--model", "local-completions")) == ()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trtllm-bench whose help is what the file `help` beside it says."""
    program_output.answer.cache_clear()
    program = tmp_path / "trtllm-bench"
    program.write_text(f'#!/bin/sh\necho asked >> "{tmp_path}/log"\ncat "{tmp_path}/help"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_BENCH", str(program))
    return tmp_path


def command(folder: Path) -> Command:
    argv = render(CASES["b200-min-latency"].scenario, "1.0.0").argv
    return Command((str(folder / "trtllm-bench"), *argv[1:]))


def declared(*options: str) -> str:
    return "".join(f"  {option} TEXT  what it is\n" for option in options)


KNOWN = [
    word for word in render(CASES["b200-min-latency"].scenario, "1.0.0").argv if word[:2] == "--"
]


class TestVerify:
    def test_passes_what_the_program_knows_and_asks_once(self, bench: Path) -> None:
        (bench / "help").write_text(declared(*KNOWN))
        verify(build("1.0.0"), [command(bench), command(bench)], Locations())
        assert (bench / "log").read_text().split() == ["asked", "asked"], "both of its helps, once"

    def test_an_option_that_the_program_lacks_is_an_error(self, bench: Path) -> None:
        (bench / "help").write_text(declared(*KNOWN).replace("--num_requests", "--num_request"))
        with pytest.raises(InputError) as caught:
            verify(build("1.0.0"), [command(bench)], Locations())
        message = str(caught.value)
        assert "installed trtllm-bench throughput has no option --num_requests" in message
        assert "TensorRT-LLM 1.0.0" in message
        assert "the installed program has --num_request;" in message

    def test_a_program_that_cannot_be_asked_is_an_error(self, bench: Path) -> None:
        (bench / "help").write_text("Traceback …\nImportError: libnvinfer.so.10\n")
        with pytest.raises(InputError, match=r"(?s)does not list its options.*libnvinfer"):
            verify(build("1.0.0"), [command(bench)], Locations())

    def test_commands_of_others_are_left_alone(self) -> None:
        verify(build("1.0.0"), [Command(("lm_eval", "--model", "x"))], Locations())

    def test_in_a_container_its_program_is_asked(self) -> None:
        asked: list[tuple[str, ...]] = []

        class Image:
            def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
                asked.append(argv)
                return Answer(0, declared(*KNOWN))

        program_output.answer.cache_clear()
        argv = render(CASES["b200-min-latency"].scenario, "1.0.0").argv
        verify(build("1.0.0"), [Command(argv)], Locations(inside=Image()))
        assert [words[0] for words in asked] == ["trtllm-bench", "trtllm-bench"]
        assert all(words[-1] == "--help" for words in asked)


def test_a_script_of_the_sources_is_the_images_where_no_checkout_is_named() -> None:
    class Image:
        def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
            raise NotImplementedError

    inside = Locations(inside=Image())
    assert script(inside, "examples/a.py") == ("python", "/app/tensorrt_llm/examples/a.py")
