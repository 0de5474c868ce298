"""Limits of YAML: files that end a process, or fill its memory, are refused by a message."""

import subprocess
import sys
from pathlib import Path

import pytest
from tables import each

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.yaml_document import (
    DEEPEST,
    LARGEST_FILE,
    MOST_ERRORS,
    MOST_VALUES,
    read_document,
)

DEEP = {
    "lists in brackets": "[" * 50_000,
    "mappings in brackets": "{" * 50_000,
    "a mapping in each list": "[a: " * 25_000,
    "lists of lists": "- " * 50_000,
    "keys that are mappings": "? " * 50_000,
    "one level deeper a line": "\n".join(" " * depth + "a:" for depth in range(1200)),
    "lists below their key's column": "a:\n" + "\n".join(f"{'  ' * n}- a:" for n in range(800)),
}
_READS = """
import sys
from pathlib import Path
from perfgate.scenarios.yaml_document import read_document
document, errors = read_document(Path(sys.argv[1]))
print(errors[0])
"""


def bomb(levels: int) -> str:
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", DEEP)
def test_a_deep_file_does_not_end_the_process(tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(DEEP[name])
    # In a process of its own: libyaml's stack overflow is no exception.
    done = subprocess.run(
        [sys.executable, "-c", _READS, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-300:]
    assert "nested too deep" in done.stdout
    assert f"expected: at most {DEEPEST} levels" in done.stdout
    assert done.stdout.startswith(f"{file}:")


def test_depth_is_counted_the_same_in_a_short_file(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("[" * DEEPEST + "]" * DEEPEST)
    assert read_document(file)[1] == []
    file.write_text("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    assert "nested too deep" in str(read_document(file)[1])
    deep = "".join(f"{' ' * level}a:\n" for level in range(DEEPEST + 1))
    file.write_text(deep + " " * (DEEPEST + 1) + "b")
    assert "nested too deep" in str(read_document(file)[1])


@pytest.mark.timeout(60)
def test_aliases_that_multiply_are_refused_before_anything_walks_them(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(bomb(9))
    (error,) = read_document(file)[1]
    assert str(error).splitlines()[:2] == [
        f"{file}: too many values",
        "  found: 1,234,567,909 values, counting each time what aliases repeat",
    ]
    file.write_text(bomb(4))
    document, errors = read_document(file)
    assert document is not None
    assert errors == []


@pytest.mark.timeout(60)
def test_defaults_that_multiply_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    settings = "".join(f"      s{number}: 1\n" for number in range(1000))
    text = "schema_version: 1\ndefaults:\n  engine:\n    settings:\n" + settings + "scenarios:\n"
    file.write_text(text + "".join(f"- {{id: s{number}}}\n" for number in range(1000)))
    with pytest.raises(SeveralInputErrors, match="what defaults repeat"):
        load_scenarios(file)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{number}: 1\n" for number in range(3000)) * 2,
        "schema_version: 1\nscenarios:\n" + "- {}\n" * 4000,
    ],
    ids=["fields given twice", "empty scenarios"],
)
def test_of_thousands_of_errors_the_first_are_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(file)
    assert 10 < len(caught.value.errors) <= 2 * MOST_ERRORS


@each(
    ("content", "told"),
    [
        (b"a: " + b"1" * 6000, ":1: a: a number of too many digits\n  found: 111"),
        (b"a: 1." + b"1" * 6000, ":1: a: a number of too many digits"),
        (b"a" * (LARGEST_FILE + 1), ": too large for a YAML file\n  found: 1048577 bytes"),
        (b"a: [" + b"1," * (MOST_VALUES + 1) + b"]", ": too many values"),
    ],
)
def test_what_cannot_be_read_is_told_shortly(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    error = read_document(file)[1][0]
    assert told in str(error)
    assert len(str(error)) < 800


@pytest.mark.timeout(20)
def test_a_device_among_scenario_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("/dev/zero")
    (error,) = read_document(tmp_path / "a.yaml")[1]
    assert isinstance(error, InputError)
    assert "not a regular file\n  found: a device" in str(error)
