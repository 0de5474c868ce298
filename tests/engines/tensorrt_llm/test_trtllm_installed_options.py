"""Options are checked against what the installed programs say of themselves."""

import re
import shlex
import sys
from pathlib import Path

import made_release
import pytest
import yaml
from tables import each
from trtllm_scenarios import CASES, build, render

from perfgate.core.errors import CliDrift, InputError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import Answer
from perfgate.core.programs.programs import TRTLLM_BENCH
from perfgate.engines import installed_programs
from perfgate.engines.base import OptionsAnswer
from perfgate.engines.help_page import options_in
from perfgate.engines.tensorrt_llm.checkout import script
from perfgate.engines.tensorrt_llm.definition_check import calls
from perfgate.engines.tensorrt_llm.installed_options import verify
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.engines.tensorrt_llm.table import (
    BENCH,
    BENCHMARK_SERVING,
    PREPARE,
    PREPARE_SCRIPT,
    QUICKSTART,
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


# As the options of trtllm-serve 1.3 (click), vLLM 0.10 and SGLang 0.5.6 (argparse) print them.
MARKED = """\
  --backend [pytorch|_autodeploy]
                                  :tag:`deprecated` The backend to use to
                                  serve the model.
  --tp_size, --tensor_parallel_size INTEGER
                                  :tag:`beta` Tensor parallelism size.
  --config, --extra_llm_api_options TEXT
                                  :tag:`prototype` Path to a YAML file that
                                  overwrites the parameters.
  --disable-log-requests, --no-disable-log-requests
                        [DEPRECATED] Disable logging requests. (default: True)
  --allow-deprecated-quantization, --no-allow-deprecated-quantization
                        Whether to allow deprecated quantization methods.
  --enable-ep-moe       NOTE: --enable-ep-moe is deprecated. Please set `--ep-
                        size` to the same value as `--tp-size` instead.
  --prefill-round-robin-balance
                        Note: Note: --prefill-round-robin-balance is
                        deprecated now.
"""


def test_what_a_help_page_marks() -> None:
    found = {name: option.status for name, option in options_in(MARKED).items() if option.status}
    assert found == {
        "backend": "deprecated",
        "extra_llm_api_options": "prototype",
        "no_disable_log_requests": "deprecated",
        "enable_ep_moe": "deprecated",
        "prefill_round_robin_balance": "deprecated",
    }


def test_kinds_choices_and_what_is_required_on_a_help_page() -> None:
    found = options_in(CLICK)
    assert found["backend"].choices == ("pytorch", "tensorrt")
    assert found["extra_llm_api_options"].options == ("--config", "--extra_llm_api_options")
    assert found["enable_chunked_context"].kind == "flag"
    assert found["enable_chunked_context"].off == ("--disable_chunked_context",)
    assert (found["model"].kind, found["model"].required) == ("text", True)
    assert found.keys().isdisjoint({"mentioned", "not_declared"})
    assert options_in("  --backend [torch]\n")["backend"].choices == ("torch",)
    assert options_in("  --save [SAVE]  where\n")["save"].choices == ()
    assert options_in("  --size INTEGER RANGE  how big\n")["size"].kind == "integer"
    text = "  --backend {a,b}       one\n  --prompt PROMPT [PROMPT ...]\n  --fast\n"
    found = options_in(text)
    assert found["backend"].choices == ("a", "b")
    assert found["prompt"].many
    assert found["fast"].kind == "flag"


PYTHON = str(Path(sys.executable).absolute())
BENCH_CALL = "trtllm-bench --model m throughput --tp 8"
OF_BENCH = [
    (BENCH, "trtllm-bench --help", "--model m"),
    (THROUGHPUT, "trtllm-bench --model any throughput --help", "--tp 8"),
]
PREPARE_CALL = "trtllm-bench --model m prepare-dataset --output f token-norm-dist --input-mean 1"
SCRIPT_CALL = "python /src/prepare_dataset.py --stdout token-norm-dist --input-mean 1"
CLIENT_CALL = "python -m tensorrt_llm.serve.scripts.benchmark_serving --model m"


@each(
    ("line", "found"),
    [
        (BENCH_CALL, OF_BENCH),
        (f"mpirun -n 16 --unknown trtllm-llmapi-launch {BENCH_CALL}", OF_BENCH),
        (f"srun -N 2 bash -c 'trtllm-llmapi-launch {BENCH_CALL}'", OF_BENCH),
        (
            PREPARE_CALL,  # a generator's help would load a tokenizer: it is not asked for
            [
                (BENCH, "trtllm-bench --help", "--model m"),
                (PREPARE, "trtllm-bench --model any prepare-dataset --help", "--output f"),
                (f"{PREPARE} token-norm-dist", "", "--input-mean 1"),
            ],
        ),
        (
            SCRIPT_CALL,
            [
                (PREPARE_SCRIPT, "python /src/prepare_dataset.py --help", "--stdout"),
                (f"{PREPARE_SCRIPT} token-norm-dist", "", "--input-mean 1"),
            ],
        ),
        (
            f"mpirun {PYTHON} -u -E quickstart_advanced.py --model_dir m",
            [(QUICKSTART, f"{PYTHON} -u -E quickstart_advanced.py --help", "--model_dir m")],
        ),
        (
            f"{PYTHON} -m standin m --tp_size 8",
            [("trtllm-serve serve", f"{PYTHON} -m standin serve --help", "m --tp_size 8")],
        ),
        (CLIENT_CALL, [(BENCHMARK_SERVING, f"{CLIENT_CALL[:-10]} --help", "--model m")]),
        ("lm_eval --model local-completions", []),
    ],
)
def test_calls_of_known_programs_behind_launchers(
    monkeypatch: pytest.MonkeyPatch, line: str, found: list[tuple[str, str, str]]
) -> None:
    monkeypatch.setenv("PERFGATE_PROGRAM_TENSORRT_LLM", f"{sys.executable} -u -E")
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_SERVE", f"{sys.executable} -m standin")
    told = [
        (one.page, " ".join(one.help), " ".join(one.arguments)) for one in calls(shlex.split(line))
    ]
    assert told == found


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trtllm-bench whose help is what the file `help` beside it says."""
    installed_programs.answer.cache_clear()
    program = tmp_path / "trtllm-bench"
    program.write_text(f'#!/bin/sh\necho asked >> "{tmp_path}/log"\ncat "{tmp_path}/help"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_BENCH", str(program))
    return tmp_path


def command(folder: Path) -> Command:
    argv = render(CASES["b200-min-latency"], "1.0.0").argv
    return Command((str(folder / "trtllm-bench"), *argv[1:]))


def declared(*options: str) -> str:
    return "".join(f"  {option} TEXT  what it is\n" for option in options)


KNOWN = [word for word in render(CASES["b200-min-latency"], "1.0.0").argv if word[:2] == "--"]


class TestVerify:
    def test_passes_what_the_program_knows_and_asks_once(self, bench: Path) -> None:
        (bench / "help").write_text(declared(*KNOWN))
        verify(build("1.0.0"), [command(bench), command(bench)], Locations())
        assert (bench / "log").read_text().split() == ["asked", "asked"], "both of its helps, once"

    def test_a_program_that_cannot_be_asked_is_an_error(self, bench: Path) -> None:
        (bench / "help").write_text("Traceback …\nImportError: libnvinfer.so.10\n")
        with pytest.raises(InputError, match=r"(?s)does not list its options.*libnvinfer"):
            verify(build("1.0.0"), [command(bench)], Locations())

    def test_in_a_container_its_program_is_asked(self) -> None:
        asked: list[tuple[str, ...]] = []

        class Image:
            def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
                asked.append(argv)
                return Answer(0, declared(*KNOWN))

        installed_programs.answer.cache_clear()
        argv = render(CASES["b200-min-latency"], "1.0.0").argv
        commands = [Command(argv, files={FILE: "print_iter_log: true\n"})]
        (unasked,) = verify(build("1.0.0"), commands, Locations(inside=Image())).unasked
        assert "keys of the LLM-API YAML: not asked: no answer" in unasked
        *helps, build_question = asked
        assert [words[0] for words in helps] == ["trtllm-bench", "trtllm-bench"]
        assert all(words[-1] == "--help" for words in helps)
        assert build_question[:2] == ("python", "-c"), "the image's own Python"


class Installed:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # a drift may have the same size and age
        python = sys.executable
        monkeypatch.setenv("PERFGATE_PROGRAM_TENSORRT_LLM", python)
        words = f"{python} -m tensorrt_llm.commands.bench"
        monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_BENCH", words)

    def drifted(self, **changes: tuple[str, str]) -> None:
        files = {"bench": BENCH_FILE, "model": MODEL_FILE, "dataset": DATASET_FILE}
        made_release.write(self.folder, {files[name]: change for name, change in changes.items()})

    def verify(self, argv: tuple[str, ...], **keys: object) -> OptionsAnswer:
        files = {FILE: yaml.safe_dump(keys)} if keys else {}
        found = (*Locations().find(TRTLLM_BENCH), *argv[1:])
        return verify(build("1.3.0rc3"), [Command(found, files=files)], Locations())


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """A made-up 1.3 that can really be asked: its programs are click's, its models pydantic's."""
    installed_programs.answer.cache_clear()
    return Installed(tmp_path, monkeypatch)


BENCH_FILE = "tensorrt_llm/bench/benchmark/throughput.py"
MODEL_FILE = "tensorrt_llm/llmapi/llm_args.py"
DATASET_FILE = "tensorrt_llm/bench/dataset/prepare_dataset.py"
THROUGHPUT_CALL = ("trtllm-bench", "--model", "m", "throughput", "--tp", "8")
GENERATOR_CALL = (
    *("trtllm-bench", "--model", "m", "prepare-dataset", "--output", "f", "token-norm-dist"),
    *("--num-requests", "1", "--input-mean", "1", "--input-stdev", "0"),
    *("--output-mean", "1", "--output-stdev", "0"),
)


class TestInstalledBuild:
    def test_what_it_takes_is_clean_and_nothing_was_left_unasked(
        self, installed: Installed
    ) -> None:
        noise = "print('{\"a\": 1}')\nimport atexit; atexit.register(print, 'bye')\n"
        installed.drifted(model=("from enum import Enum", f"{noise}from enum import Enum"))
        draft = {"decoding_type": "MTP", "num_nextn_predict_layers": 3}
        answer = installed.verify(
            THROUGHPUT_CALL,
            speculative_config=draft,
            moe_config={"backend": "TRTLLM", "load_balancer": {"num_slots": 288}},
            cuda_graph_config=None,
            stream_interval=10,
        )
        assert answer == OptionsAnswer()

    @each(
        ("keys", "said"),
        [
            ({"stream_intervals": 1}, "no key stream_intervals in its YAML file"),
            ({"kv_cache_config": {"dtyp": "fp8"}}, "no key kv_cache_config.dtyp in its YAML"),
            (
                {"speculative_config": {"decoding_type": "MTP", "eagle3_one_model": True}},
                "no key speculative_config.eagle3_one_model",
            ),
        ],
    )
    def test_a_key_that_its_model_lacks_is_drift(
        self, installed: Installed, keys: dict[str, object], said: str
    ) -> None:
        installed.drifted()
        with pytest.raises(CliDrift) as caught:
            installed.verify(THROUGHPUT_CALL, **keys)
        assert said in str(caught.value)

    def test_a_renamed_key_names_the_nearest_and_the_tables_line(
        self, installed: Installed
    ) -> None:
        installed.drifted(model=("stream_interval", "stream_intervall"))
        with pytest.raises(CliDrift) as caught:
            installed.verify(THROUGHPUT_CALL, stream_interval=10)
        message = str(caught.value)
        assert "the installed program has stream_intervall;" in message
        assert re.search(r"releases/\S+\.yaml:\d+ makes perfgate write it", message)

    @pytest.mark.parametrize(
        ("words", "keys", "place", "field"),
        [
            (("--nwe", "1"), {}, "--nwe", "engine.extra_args.trtllm-bench[0]"),
            ((), {"moe_config": {"a": 1}}, "moe_config.a", "engine.extra_yaml.moe_config.a"),
        ],
    )
    def test_what_a_scenario_itself_gives_names_its_field(
        self,
        installed: Installed,
        words: tuple[str, ...],
        keys: dict[str, object],
        place: str,
        field: str,
    ) -> None:
        installed.drifted()
        argv = (*Locations().find(TRTLLM_BENCH), *THROUGHPUT_CALL[1:], *words)
        files = {FILE: yaml.safe_dump(keys)} if keys else {}
        command = Command(argv, files=files, asked_by={place: f"one.{field}"})
        with pytest.raises(InputError) as caught:
            verify(build("1.3.0rc3"), [command], Locations())
        assert not isinstance(caught.value, CliDrift), "no table of perfgate's is wrong"
        assert caught.value.field == f"one.{field}"
        assert str(caught.value).endswith("fix: correct it, or take it out of the scenario")

    def test_a_choice_that_is_gone_is_drift(self, installed: Installed) -> None:
        installed.drifted(bench=("Choice(BACKENDS)", "Choice(['torch'])"))
        with pytest.raises(CliDrift, match="does not take --backend: no such choice") as caught:
            installed.verify((*THROUGHPUT_CALL, "--backend", "pytorch"))
        assert "torch" in str(caught.value)

    def test_the_generators_options_are_asked_without_a_tokenizer(
        self, installed: Installed
    ) -> None:
        installed.drifted()
        assert installed.verify(GENERATOR_CALL) == OptionsAnswer()
        installed.drifted(dataset=("--input-mean", "--input-average"))
        installed_programs.answer.cache_clear()
        with pytest.raises(CliDrift, match="token-norm-dist has no option --input-mean"):
            installed.verify(GENERATOR_CALL)

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ("import no_such_torch", "ModuleNotFoundError: No module named 'no_such_torch'"),
            ("raise SystemExit('no driver')", "SystemExit: no driver"),
            ("import os; os._exit(3)", "no answer"),
        ],
    )
    def test_a_model_that_cannot_be_asked_is_told(
        self, installed: Installed, change: str, why: str
    ) -> None:
        installed.drifted(model=("from enum import Enum", change))
        (told,) = installed.verify(THROUGHPUT_CALL, anything=1).unasked
        assert told.startswith("keys of the LLM-API YAML: not asked: ")
        assert why in told

    def test_a_schema_that_cannot_be_made_leaves_the_names(self, installed: Installed) -> None:
        hidden = (
            "class Opaque: pass\n\nclass TorchLlmArgs(BaseLlmArgs):\n    opaque: Opaque = None\n"
        )
        installed.drifted(model=("class TorchLlmArgs(BaseLlmArgs):\n", hidden))
        (told,) = installed.verify(THROUGHPUT_CALL, stream_interval=[1]).unasked
        assert told.startswith("types of the keys of the LLM-API YAML: not asked: names alone")
        with pytest.raises(CliDrift, match=r"no key cuda_graph_config\.padding"):
            installed.verify(THROUGHPUT_CALL, cuda_graph_config={"padding": True})

    @each(
        ("change", "told"),
        [
            (("enable_padding: bool = Field(default=False)", "enable_padding: bool = True"),
             "cuda_graph_config.enable_padding: found True, documented False"),
            (('attn_backend: str = "TRTLLM"', 'attn_backend: str = "FLASHINFER"'),
             "attn_backend: found 'FLASHINFER', documented 'TRTLLM'"),
            (('dtype: str = Field(default="auto"', 'dtype: str = Field(default="fp8"'),
             "kv_cache_config.dtype: found 'fp8', documented 'auto'"),
            (("max_batch_size: NonNegativeInt = Field(default=0)", "max_batch_size: int"), None),
            (('attn_backend: str = "TRTLLM"', 'attention: str = "FLASHINFER"'), None),
            (("from enum import Enum", "import no_such_torch"), None),
        ],
    )  # fmt: skip
    def test_a_default_that_the_recipe_documents_otherwise_is_told(
        self, installed: Installed, change: tuple[str, str], told: str | None
    ) -> None:
        installed_programs.answer.cache_clear()
        installed.drifted(model=change)
        recipe = "quick-start-recipe-for-deepseek-r1-on-trtllm.md, Extra LLM API Options"
        expected = () if told is None else (f"default of {told} ({recipe})",)
        assert installed.verify(THROUGHPUT_CALL, stream_interval=10).moved_defaults == expected
        assert installed.verify(THROUGHPUT_CALL).moved_defaults == ()

    def test_secrets_are_masked(self, installed: Installed) -> None:
        leak = "raise OSError('HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345')"
        installed.drifted(model=("from enum import Enum", leak))
        (told,) = installed.verify(THROUGHPUT_CALL, anything=1).unasked
        assert "hf_abcdef" not in told

    def test_what_the_build_marks_is_told_and_fits(self, installed: Installed) -> None:
        """TensorRT-LLM tags an option in its help and a key in its schema; beta is no warning."""
        call = (*THROUGHPUT_CALL, "--warmup", "0")
        installed.drifted(bench=("How many.", ":tag:`beta` How many."))
        assert installed.verify(call, stream_interval=10) == OptionsAnswer()
        installed_programs.answer.cache_clear()
        installed.drifted(
            bench=("How many.", ":tag:`deprecated` How many."),
            model=('status="beta"', 'status="prototype"'),
        )
        assert installed.verify(call, stream_interval=10).marked == (
            "trtllm-bench throughput --warmup: marked deprecated by the build",
            "LLM-API YAML stream_interval: marked prototype by the build",
        )
        with pytest.raises(CliDrift, match="no option --new"):  # a mark hides no drift
            installed.verify((*call, "--new"), stream_interval=10)


def test_a_script_of_the_sources_is_the_images_where_no_checkout_is_named() -> None:
    class Image:
        def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
            raise NotImplementedError

    inside = Locations(inside=Image())
    assert script(inside, "examples/a.py") == ("python", "/app/tensorrt_llm/examples/a.py")
