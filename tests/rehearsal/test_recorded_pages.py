"""Recorded pages: whole, of a known source, chosen by release; nothing of the tables is in them."""

from typing import Any

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.engines.definitions import YAML
from perfgate.engines.tensorrt_llm.installed_options import keys_of
from perfgate.rehearsal.programs.llm_api import model_of
from perfgate.rehearsal.recorded_pages import FOLDER, label, nearest, read

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


@each("name", NAMES)
def test_a_page_is_a_definition_that_names_its_source(name: str) -> None:
    page = read(name)
    assert len(page.source) > 20
    assert (page.keys is None) == (page.unknown_keys is None)


@each("name", NAMES)
def test_no_spelling_belongs_to_two_options(name: str) -> None:
    page = read(name)
    for program in page.programs:
        spelled = [word for one in page.programs[program].values() for word in one.spellings]
        assert len(spelled) == len(set(spelled)), program


@each(
    ("version", "program", "page"),
    [
        ("0.20.0", "trtllm-serve serve", "0.20.0"),
        ("0.19.0", "trtllm-serve serve", "0.20.0"),  # the next one: there is none before
        ("1.0.0", "trtllm-serve serve", "0.20.0"),
        ("1.0.0", "trtllm-bench throughput", "1.0.0rc4"),
        ("1.2.0", "trtllm-bench throughput", "1.1.0rc6"),
        ("99", "trtllm-bench throughput", "1.3.0rc3"),
        ("1.4.0", "trtllm-serve serve", "about 1.4.0rc0"),
        ("0.19.0", "gpqa_llmapi.py", "about 0.19"),
        ("1.0.0", YAML, "about 1.0.0rc5"),
        ("1.0.0rc1", YAML, "0.20.0"),
    ],
)
def test_each_program_plays_the_page_of_the_nearest_release(
    version: str, program: str, page: str
) -> None:
    assert label(nearest("tensorrt-llm", version)[program]) == page


def test_a_subcommand_is_not_there_before_a_page_of_its_program_that_lacks_it() -> None:
    name = "trtllm-bench prepare-dataset"
    assert name not in nearest("tensorrt-llm", "1.0.0")
    assert name not in nearest("tensorrt-llm", "1.1.0rc6")
    assert name in nearest("tensorrt-llm", "1.2.0")  # between two pages it may have come
    assert name in nearest("tensorrt-llm", "1.3.0rc3")


def test_what_is_no_release_is_refused() -> None:
    with pytest.raises(InputError, match="not a release"):
        nearest("tensorrt-llm", "newest")


def test_a_pages_model_tells_no_type_that_the_page_does_not() -> None:
    """A page says ``int`` of a list of them, too, and nothing of null."""
    model: Any = model_of(read(nearest("tensorrt-llm", "1.3.0rc3")[YAML]))
    keys = keys_of({"name": model.__name__, "schema": model.model_json_schema()})
    graphs = keys["cuda_graph_config"]
    assert "null" in graphs.types
    assert graphs.models["CudaGraphConfig"]["batch_sizes"].types == ("any",)
    assert "TRTLLM" in keys["moe_config"].models["MoeConfig"]["backend"].choices
    assert keys["moe_config"].models["MoeConfig"]["backend"].types == ("null",)
