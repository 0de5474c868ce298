"""TensorRT-LLM as perfgate's engine: found by its name, and what it answers."""

from pathlib import Path

from trtllm_scenarios import CASES, ON_PAPER, build

from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM

CASE = CASES["sharegpt"].scenario


def test_the_server_calls_a_folder_by_its_last_part(tmp_path: Path) -> None:
    (tmp_path / "DeepSeek-R1-0528").mkdir()
    here = Locations(models=tmp_path)
    assert TensorRTLLM().served_model(CASE, here) == "DeepSeek-R1-0528"
    assert TensorRTLLM().served_model(CASE, ON_PAPER) == "deepseek-ai/DeepSeek-R1-0528"


def test_the_tokenizer_is_the_models(tmp_path: Path) -> None:
    (tmp_path / "DeepSeek-R1-0528").mkdir()
    found = TensorRTLLM().tokenizer(CASE, tmp_path, Locations(models=tmp_path))
    assert found == str(tmp_path / "DeepSeek-R1-0528")
    assert TensorRTLLM().tokenizer(CASE, tmp_path, ON_PAPER) == CASE.model.name


def test_serves_on_the_endpoint() -> None:
    endpoint = Endpoint("127.0.0.1", 8123, "model")
    argv = TensorRTLLM().serve(CASE, build("1.0.0"), endpoint, ON_PAPER).argv
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    assert argv[argv.index("--port") + 1] == "8123"
