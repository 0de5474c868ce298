"""A small scenario file for tests: changed, written, and what is said of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.rules.vocabulary import Vocabulary

SECTIONS = """\
    title: Small
    source: {document: guide.md, section: Serving}
    hardware: {gpu: none, gpus: 0}
    model: {name: Small-1B, precision: bf16}
    engine:
      name: llama.cpp
      settings:
        max_batch_size: 4
    workload:
      client: aiperf
      dataset: synthetic
      isl: 64
      osl: 32
      concurrency: 4
      requests: 24
    gate: {metrics: [output_throughput]}
    limits: {start_s: 60, silence_s: 120, total_s: 600}
"""
GOOD = f"schema_version: 1\nscenarios:\n  - id: small\n{SECTIONS}"

Write = Callable[..., Path]
Change = tuple[str, str]


def twice(text: str) -> str:
    """A file with the scenario of `text` twice, under one more id."""
    head, mark, body = text.partition("  - id: small")
    return f"{head}{mark}{body}  - id: other{body}"


def changed(text: str, *changes: Change) -> tuple[str, int]:
    """The text with all changes, each made once, and the line that the first of them ends on."""
    at = 0
    for old, new in reversed(changes):
        assert old in text, old
        at = text.index(old) + len(new)
        text = text.replace(old, new, 1)
    return text, text[:at].rstrip("\n").count("\n") + 1


def line_of(text: str, words: str) -> int:
    return next(n for n, row in enumerate(text.splitlines(), start=1) if words in row)


def errors_of(place: Path | list[Path], known: Vocabulary | None = None) -> list[InputError]:
    with pytest.raises(SeveralInputErrors) as caught:
        load_suite(place, known)
    return list(caught.value.errors)


def assert_told(file: Path, line: int, start: str, words: str) -> None:
    """Some error of that line of the file starts so, and has those words."""
    told = [str(error) for error in errors_of(file)]
    assert [t for t in told if t.startswith(f"{file}:{line}: {start}") and words in t], told


WITH_DEFAULTS = """\
schema_version: 1
defaults:
{sections}scenarios:
  - id: first
    title: First
{first}
  - id: second
    title: Second
"""


def with_defaults(first: str, *changes: tuple[str, str]) -> str:
    """GOOD's sections as defaults of two scenarios."""
    sections, _ = changed(SECTIONS.replace("    title: Small\n", ""), *changes)
    return WITH_DEFAULTS.format(sections=sections, first=first)
