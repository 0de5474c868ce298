"""A mismatch names the line of the release table that makes perfgate write it."""

from pathlib import Path

import pytest

from perfgate.engines.definitions import YAML
from perfgate.engines.option_check import Mismatch
from perfgate.engines.release_tables import ReleaseTable, ReleaseTables

TABLES = {
    "1.0.yaml": """\
programs:
  trtllm-serve:
    tp: {name: --tp_size}
  trtllm-bench throughput:
    tp: {name: --tp}
spelling:
  moe_backend: [moe_config, backend]
  graphs: {at: [cuda_graph_config], padding: enable_padding}
""",
    "1.2.yaml": """\
programs:
  trtllm-serve:
    tp: {name: --tensor_parallel_size}
    backend: {name: --backend}
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "program", "place", "line"),
    [
        ("1.1", "trtllm-serve serve", "--tp_size", "1.0.yaml:3"),
        ("1.1", "trtllm-bench throughput", "--tp", "1.0.yaml:5"),
        ("1.3", "trtllm-serve serve", "--tensor_parallel_size", "1.2.yaml:3"),
        ("1.1", "trtllm-serve serve", "--tensor_parallel_size", None),
        ("1.3", YAML, "moe_config.backend", "1.0.yaml:7"),
        ("1.3", YAML, "moe_config", "1.0.yaml:7"),
        ("1.3", YAML, "cuda_graph_config.enable_padding", "1.0.yaml:8"),
        ("1.3", YAML, "nobody", None),
    ],
)
def test_the_newest_line_up_to_the_release(
    folder: Path, version: str, program: str, place: str, line: str | None
) -> None:
    wrong = Mismatch(program, place, "no such option", "x", "y")
    found = ReleaseTables(ReleaseTable, folder).told_by(version, wrong)
    assert found == (f"{folder.name}/{line}" if line else "")
