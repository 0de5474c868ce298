"""Run by the engine's own Python: which release of the engine it has, without importing it.

Never imported by perfgate: its text is given to ``python -c``, so it stands alone, and nothing but
the line between the marks is read of what it prints. Its arguments are the package, the names of
its distributions with commas, and options of git, by which a checkout runs no program of its own.
"""

import importlib.metadata
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import typing

_MARK = "perfgate-engine-build"
_LIMIT_S = 20.0


def answer(package: str, distributions: str, git: list[str]) -> dict[str, typing.Any]:
    """Version; commit as the package says it, else that of the checkout that it is run from."""
    told: dict[str, typing.Any] = {"python": sys.executable, "version": None}
    for name in distributions.split(","):
        try:
            told["version"] = told["version"] or importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found = importlib.util.find_spec(package)
    folders = list(getattr(found, "submodule_search_locations", None) or ())
    if not folders:
        return told
    folder = pathlib.Path(folders[0])
    said = _text(folder / "_version.py")
    version = re.search(
        r"__version__\s*=.*?['\"]([^'\"]+)['\"]", said or _text(folder / "version.py")
    )
    told["version"] = told["version"] or (version and version[1])
    commit = re.search(r"\bcommit_id\s*=\s*['\"]g?([0-9a-f]{7,40})['\"]", said)
    told["commit"] = commit[1] if commit else _checkout(folder, git)
    return told


def _text(file: pathlib.Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def _checkout(folder: pathlib.Path, git: list[str]) -> str | None:
    """The commit of the engine's repository, where the package is one in it or its ``python/``."""
    parents = folder.resolve().parents
    root = next((one for one in parents[:2] if (one / ".git").exists()), None)
    if root is None:
        return None
    safe = ["-c", f"safe.directory={root}"]
    call = ["git", *git, *safe, "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=_LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    print(
        f"\n<{_MARK}>{json.dumps(answer(sys.argv[1], sys.argv[2], sys.argv[3:]))}</{_MARK}>",
        flush=True,
    )
