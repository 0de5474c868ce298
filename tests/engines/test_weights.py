"""A model's folder: where it is looked for, what identifies it, whether it is complete."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tables import each
from trtllm_scenarios import ON_PAPER, scenario

from perfgate.core.errors import InputError
from perfgate.core.measurement import Json
from perfgate.core.programs.locations import Locations
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.engines.weights import model_facts, reference
from perfgate.scenarios.scenario import EngineSettings, Model, Scenario, Weights

NAME = "nvidia/DeepSeek-R1-FP4"
SHARDS = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]


def case(**model: object) -> Scenario:
    return replace(scenario(), model=Model(NAME, "nvfp4", **model))  # type: ignore[arg-type]


def trtllm_facts(asked: Scenario, locations: Locations) -> Mapping[str, Json]:
    return TensorRTLLM().model_facts(asked, locations)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small checkpoint of three shards; sparse files stand for its gigabytes."""
    folder = tmp_path / "DeepSeek-R1-FP4"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    quantization = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    (folder / "hf_quant_config.json").write_text(json.dumps(quantization))
    for name in SHARDS:
        with (folder / name).open("wb") as file:
            file.truncate(2**30)
    return folder


@pytest.fixture
def locations(folder: Path) -> Locations:
    return Locations(models=folder.parent)


class TestReference:
    def test_the_whole_name_or_its_last_part_is_the_folder(
        self, locations: Locations, folder: Path
    ) -> None:
        found = reference(case(), locations)
        assert (found.name, found.path, found.where) == (NAME, folder, str(folder))
        facts = model_facts(case(), locations)
        assert (facts["shards"], facts["bytes"]) == (3, 3 * 2**30)
        assert facts["source"] == str(folder)
        whole = folder.parent / NAME
        whole.mkdir(parents=True)
        assert reference(case(), locations).path == whole
        nowhere = reference(case(), ON_PAPER)
        assert (nowhere.path, nowhere.where) == (None, NAME)

    def test_the_scenarios_own_folder_and_no_other(
        self, locations: Locations, folder: Path
    ) -> None:
        assert reference(case(folder="elsewhere"), locations).path is None
        (folder.parent / "elsewhere").mkdir()
        assert reference(case(folder="elsewhere"), locations).path == folder.parent / "elsewhere"


class TestFacts:
    def test_of_the_hub(self) -> None:
        facts = model_facts(case(), ON_PAPER)
        assert facts["source"] == "hub"
        assert facts["sha256"] != model_facts(scenario(), ON_PAPER)["sha256"]

    @pytest.mark.parametrize("changed", ["config.json", "hf_quant_config.json", SHARDS[1]])
    def test_whatever_describes_the_weights_identifies_them(
        self, changed: str, locations: Locations, folder: Path
    ) -> None:
        before = model_facts(case(), locations)["sha256"]
        assert model_facts(case(), locations)["sha256"] == before
        with (folder / changed).open("a") as file:
            file.write(" ")
        assert model_facts(case(), locations)["sha256"] != before


class TestCompleteness:
    def test_a_missing_shard_is_named(self, locations: Locations, folder: Path) -> None:
        (folder / SHARDS[1]).unlink()
        with pytest.raises(InputError) as caught:
            model_facts(case(weights=Weights(3, 3)), locations)
        message = str(caught.value)
        assert f"found: 2 files *.safetensors; no {SHARDS[1]}" in message
        assert "expected: 3 shards" in message
        assert "download the weights again" in message

    def test_a_shard_that_was_cut(self, locations: Locations, folder: Path) -> None:
        for name in SHARDS[:2]:
            with (folder / name).open("wb") as file:
                file.truncate(2**20)
        with pytest.raises(InputError, match=r"(?s)found: 1\.0 GiB.*expected: 3 GiB, within 1"):
            model_facts(case(weights=Weights(3, 3)), locations)

    def test_the_size_may_be_rounded(self, locations: Locations) -> None:
        for documented in (3, 4):
            model_facts(case(weights=Weights(3, documented)), locations)
        with pytest.raises(InputError, match="another size"):
            model_facts(case(weights=Weights(3, 5)), locations)


def write_quantization(folder: Path, text: str | None) -> Path:
    """The checkpoint's quantization config with this text; None: it is not there."""
    file = folder / "hf_quant_config.json"
    file.unlink(missing_ok=True)
    if text is not None:
        file.write_text(text)
    return file


class TestQuantization:
    ASKED = {"quant_algo": "FP8_BLOCK_SCALES", "kv_cache_quant_algo": "FP8"}  # noqa: RUF012

    def test_as_asked(self, locations: Locations, folder: Path) -> None:
        (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": self.ASKED}))
        model_facts(case(quantization=self.ASKED), locations)

    def test_another_one(self, locations: Locations) -> None:
        with pytest.raises(InputError, match=r"fix: put the right checkpoint there$"):
            model_facts(case(quantization=self.ASKED), locations)
        own = case(quantization=self.ASKED, folder="DeepSeek-R1-FP4")
        with pytest.raises(InputError) as caught:
            model_facts(own, locations)
        message = str(caught.value)
        assert "quantization.quant_algo: the checkpoint is quantized in another way" in message
        assert "found: NVFP4" in message
        assert json.dumps({"quantization": self.ASKED}) in message

    def test_none_is_null_or_no_such_key(self, locations: Locations, folder: Path) -> None:
        asked = case(quantization={"quant_algo": "NVFP4", "kv_cache_quant_algo": "none"})
        with pytest.raises(InputError, match=r"(?s)kv_cache_quant_algo.*: FP8\n  expected: none"):
            trtllm_facts(asked, locations)
        for says in ({"quant_algo": "NVFP4"}, {"quant_algo": "NVFP4", "kv_cache_quant_algo": None}):
            (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": says}))
            trtllm_facts(asked, locations)

    def test_a_type_that_is_overridden_on_purpose(self, locations: Locations) -> None:
        plain = scenario(settings=EngineSettings(tp=8, kv_cache_dtype="nvfp4"))
        with pytest.raises(InputError, match="KV cache has another type"):
            trtllm_facts(replace(plain, model=Model(NAME, "nvfp4")), locations)
        said = Model(NAME, "nvfp4", quantization={"kv_cache_quant_algo": "FP8"})
        trtllm_facts(replace(plain, model=said), locations)

    @each("quantization", [ASKED, None], ids=["asked for", "by the precision"])
    @each(
        ("text", "told"),
        [
            ("{", "not a quantization config"),
            ('{"quantization": {"quant_al', "not a quantization config"),
            ("[]", "not a quantization config"),
            ("{}", "found: no key quantization"),
            ('{"quantization": "NVFP4"}', "found: quantization: 'NVFP4'"),
            (None, "has no quantization config"),
        ],
    )
    def test_a_file_that_is_missing_or_damaged(
        self,
        quantization: dict[str, str] | None,
        text: str | None,
        told: str,
        locations: Locations,
        folder: Path,
    ) -> None:
        file = write_quantization(folder, text)
        with pytest.raises(InputError) as caught:
            trtllm_facts(case(quantization=quantization), locations)
        assert told in str(caught.value)
        assert str(file) in str(caught.value)
        assert caught.value.hint

    @each(
        ("precision", "cache", "says", "told"),
        [
            ("nvfp4", None, {"quant_algo": "NVFP4"}, None),
            ("fp4", "fp8", {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}, None),
            ("nvfp4", "fp8", {"quant_algo": "NVFP4", "kv_cache_quant_algo": None}, None),
            ("nvfp4", "auto", {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}, None),
            ("fp8", None, {"quant_algo": "FP8_BLOCK_SCALES"}, None),
            ("fp8", None, None, None),
            ("bf16", None, {"quant_algo": "W4A16_AWQ"}, None),
            ("nvfp4", None, {"quant_algo": "FP8"}, "found: FP8\n  expected: NVFP4, as case.model"),
            ("fp8", None, {"quant_algo": "NVFP4"}, "found: NVFP4\n  expected: FP8, as case.model"),
            ("nvfp4", None, {}, "quantization.quant_algo: the checkpoint's weights have another"),
            (
                "nvfp4",
                "bf16",
                {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
                "found: FP8\n  expected: bf16, as case.engine.settings.kv_cache_dtype says",
            ),
        ],
    )
    def test_what_the_scenario_says_itself_is_compared(
        self,
        precision: str,
        cache: str | None,
        says: dict[str, str] | None,
        told: str | None,
        locations: Locations,
        folder: Path,
    ) -> None:
        write_quantization(folder, None if says is None else json.dumps({"quantization": says}))
        plain = scenario(settings=EngineSettings(tp=8, kv_cache_dtype=cache))
        asked = replace(plain, model=Model(NAME, precision))
        if told is None:
            trtllm_facts(asked, locations)
            return
        with pytest.raises(InputError) as caught:
            trtllm_facts(asked, locations)
        assert told in str(caught.value)

    def test_an_engine_that_reads_other_files_needs_none(
        self, locations: Locations, folder: Path
    ) -> None:
        (folder / "hf_quant_config.json").unlink()
        model_facts(case(), locations)

    def test_a_checkpoint_of_the_hub_is_not_seen_but_one_with_a_folder_must_be(self) -> None:
        trtllm_facts(case(quantization=self.ASKED), Locations())
        own = case(folder="own", quantization=self.ASKED)
        with pytest.raises(InputError, match=r"(?s)PERFGATE_MODELS.*whose quantization can be"):
            trtllm_facts(own, Locations())
        trtllm_facts(own, ON_PAPER)
