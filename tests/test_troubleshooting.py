"""The troubleshooting page has every failure class, and nothing else."""

import re
from pathlib import Path

from perfgate.core.failures import FAILURES

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "troubleshooting.md"


def test_each_failure_class_has_its_heading() -> None:
    headings = re.findall(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(headings) == sorted(FAILURES)


def test_each_says_something_of_its_own() -> None:
    parts = re.split(r"^#{2,3} .*$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    bodies = [" ".join(part.split()) for part in parts[1:] if part.strip()]
    assert len(bodies) == len(set(bodies)) >= len(FAILURES)
