"""Run by the engine's own Python: which SGLang it has, without importing it.

Never imported by perfgate: its text is given to ``python -c``, so it stands alone, and nothing but
the line between the marks is read of what it prints. Its arguments are options of git, by which a
checkout runs no program of its own.
"""

import importlib.metadata
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import typing

_MARK = "perfgate-sglang-build"
_LIMIT_S = 20.0


def answer() -> dict[str, typing.Any]:
    """Version; commit as the package says it, else that of the checkout that it is run from."""
    told: dict[str, typing.Any] = {"python": sys.executable}
    try:
        told["version"] = importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        told["version"] = None
    found = importlib.util.find_spec("sglang")
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
    told["commit"] = commit[1] if commit else _checkout(folder)
    return told


def _text(file: pathlib.Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def _checkout(folder: pathlib.Path) -> str | None:
    """The commit of SGLang's own repository, where the package is the one in its ``python/``."""
    root = folder.resolve().parent.parent
    if not (root / ".git").exists():
        return None
    safe = ["-c", f"safe.directory={root}"]
    call = ["git", *sys.argv[1:], *safe, "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=_LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    print(f"\n<{_MARK}>{json.dumps(answer())}</{_MARK}>", flush=True)
