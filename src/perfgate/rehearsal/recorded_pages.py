"""Recorded pages: what the programs of a release accept, as the program itself or its source told.

One file a page in ``recorded/``, each a `Definitions` that names its source. Never made from the
engine's release tables, which are what a rehearsal checks: a page can contradict them.

Not every release has a page of every program. `nearest` says which one is played instead.
"""

from pathlib import Path

from msgspec import json

from perfgate.core.errors import InputError
from perfgate.engines.definitions import YAML, Definitions

FOLDER = Path(__file__).parent / "recorded"
LM_EVAL = "0.4.9.1"  # the release of lm_eval that is always played


def read(name: str) -> Definitions:
    """The page in the file called `name`, without ``.json``."""
    return json.decode((FOLDER / f"{name}.json").read_bytes(), type=Definitions)


def label(name: str) -> str:
    """Of which release a page is, for people: ``1.1.0rc6``, ``about 1.0``."""
    for engine in ("tensorrt_llm", "vllm", "sglang"):
        name = name.removeprefix(f"{engine}_")
    return name.replace("_", " ")


def nearest(engine: str, version: str) -> dict[str, str]:
    """Which page each program of a release plays.

    That of the newest release at or before it, else that of the next one after it. A subcommand
    that comes after a page of its program without it is not there before that page.

    Args:
        engine: name of the engine.
        version: release of it.

    Returns:
        Program → name of the page's file.

    Raises:
        InputError: not a version.
    """
    from packaging.version import InvalidVersion, Version  # mock programs start faster without it

    try:
        asked = Version(version)
    except InvalidVersion:
        raise InputError("not a release", field="engine version", found=repr(version)) from None
    # The YAML file is chosen as a program is.
    told: dict[str, list[tuple[Version, str]]] = {YAML: []}
    for path in FOLDER.glob("*.json"):
        page = read(path.stem)
        if page.engine == engine:
            for program in (*page.programs, *([] if page.keys is None else [YAML])):
                told.setdefault(program, []).append((Version(page.version), path.stem))
    found: dict[str, str] = {}
    for program, pages in told.items():
        pages.sort()
        if before := [name for at, name in pages if at <= asked]:
            found[program] = before[-1]
            continue
        outer = told.get(program.rpartition(" ")[0], [])
        if pages and not any(asked <= other < pages[0][0] for other, _ in outer):
            found[program] = pages[0][1]
    return found
