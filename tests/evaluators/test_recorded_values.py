"""What every recorded output says, whole and damaged: as recorded.

Values and refusals stand there in full; of the damaged forms (cut, or one number replaced) a digest
of all that is said of them. Run as a program, this file writes the record again.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfgate.evaluators.result_formats import parse

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "values.json"
FOLDERS = (
    *("aiperf", "benchmark_serving", "gpqa", "lm_eval", "performance_lab"),
    *("quickstart", "sglang_bench", "trtllm_bench", "trtllm_eval", "vllm_bench"),
)
FILES = {
    str(one.relative_to(DATA)): one
    for folder in FOLDERS
    for one in sorted((DATA / folder).rglob("*"))
    if one.is_file()
}
MOST = 10  # damaged forms of one kind and file
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def damaged(text: str) -> Iterator[str]:
    """Forms of an output that a full disk, a killed program or a broken one leave."""
    lines = text.splitlines(keepends=True)
    for end in range(0, len(lines), max(1, len(lines) // MOST)):
        yield "".join(lines[:end])
        yield "".join(lines[end:])
    numbers = [*_NUMBER.finditer(text)]
    for one in numbers[:: max(1, len(numbers) // MOST)]:
        for instead in ("NaN", "-1", "0", "1e999", '"x"'):
            yield text[: one.start()] + instead + text[one.end() :]


def said(path: Path) -> dict[str, Any]:
    """What is read of a file, and the digest of what is read of its damaged forms."""
    text = path.read_text(encoding="utf-8")
    answers = json.dumps([parse(one).plain() for one in damaged(text)], sort_keys=True)
    digest = hashlib.sha256(answers.encode()).hexdigest()[:16]
    plain: dict[str, Any] = json.loads(json.dumps(parse(text).plain()))
    return {**plain, "damaged": digest}


@pytest.mark.parametrize("name", FILES)
def test_every_output_says_what_is_recorded(name: str) -> None:
    assert said(FILES[name]) == json.loads(RECORDED.read_text(encoding="utf-8"))[name]


def test_the_record_has_every_output() -> None:
    assert set(json.loads(RECORDED.read_text(encoding="utf-8"))) == set(FILES)


if __name__ == "__main__":
    record = {name: said(path) for name, path in FILES.items()}
    text = json.dumps(record, indent=1, sort_keys=True)
    RECORDED.write_text(text + "\n", encoding="utf-8")
