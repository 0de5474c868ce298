"""Dataset files: written fast, and read without parsing hundreds of megabytes."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.rehearsal.programs import offline
from perfgate.rehearsal.programs.offline import look, write_synthetic


@given(st.integers(1, 1500), st.integers(1, 40), st.integers(1, 5000))
def test_every_line_is_a_request_of_the_asked_lengths(requests: int, isl: int, osl: int) -> None:
    stream = io.BytesIO()
    write_synthetic(stream, requests, isl, osl)
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [request["task_id"] for request in found] == list(range(requests))
    assert {len(request["input_ids"]) for request in found} == {isl}
    assert {request["output_tokens"] for request in found} == {osl}


def test_a_large_file_is_told_by_its_lines_and_a_few_of_them(tmp_path: Path) -> None:
    path = tmp_path / "dataset.txt"
    with path.open("wb") as file:
        write_synthetic(file, 5000, 1024, 2048)
    assert path.stat().st_size > offline._SMALL
    facts = look(path, 0)
    assert facts.requests == 5000
    assert (set(facts.inputs), set(facts.outputs)) == ({1024}, {2048})
    assert look(path, 4999).requests == 4999


def test_a_small_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "dataset.txt"
    rows = [{"task_id": n, "prompt": "word " * n, "output_tokens": n} for n in (1, 2, 6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = look(path, 0)
    assert facts == (3, [1, 2, 6], [1, 2, 6])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"input_ids": [1], "output_tokens": 1}', KeyError),
        ('{"task_id": 0, "input_ids": [1]}', KeyError),
        ("no JSON", ValueError),
        ("", ValueError),
    ],
)
def test_what_trtllm_bench_would_not_read(
    tmp_path: Path, text: str, error: type[Exception]
) -> None:
    path = tmp_path / "dataset.txt"
    path.write_text(text)
    with pytest.raises(error):
        look(path, 0)
