"""Recorded pages: what the programs of a release accept, as the program itself or its source told.

One file a page in ``recorded/``, each a `Definitions` that names its source. Never made from the
engine's release tables, which are what a rehearsal checks: a page can contradict them.

Not every release has a page of every program. `nearest` says which one is played instead.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Raw, Struct, json

from perfgate.core.errors import InputError
from perfgate.engines.definitions import Keys, Options

FOLDER = Path(__file__).parent / "recorded"
LM_EVAL = "0.4.9.1"  # the release of lm_eval that is always played
YAML = "LLM-API YAML"  # a page of it is chosen as that of a program is


class Page(Struct, frozen=True):
    """One page, of which only what is asked for is decoded.

    Attributes:
        engine: name of the engine.
        version: the release; of an undated source, about.
        source: who told it.
        programs: program, with its subcommands → its options.
        keys: of the YAML file; empty: not told.
        unknown_keys: what becomes of other keys; None: `keys` are not told.
    """

    engine: str
    version: str
    source: str
    programs: Mapping[str, Raw]
    keys: Raw = Raw(b"{}")
    unknown_keys: Literal["refused", "ignored"] | None = None

    def options(self, program: str) -> Options:
        """The options of `program`."""
        found: Options = json.decode(self.programs[program], type=Options)
        return found

    def yaml_keys(self) -> Keys:
        """The keys of the YAML file."""
        found: Keys = json.decode(self.keys, type=Keys)
        return found

    def tells(self, program: str) -> bool:
        """Whether it has a page of `program`, or of the YAML file."""
        return self.unknown_keys is not None if program == YAML else program in self.programs


def read(name: str) -> Page:
    """The page in the file called `name`, without ``.json``."""
    return json.decode((FOLDER / f"{name}.json").read_bytes(), type=Page)


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
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    pages = {name: page for name in names if (page := read(name)).engine == engine}
    dated = sorted((Version(page.version), name) for name, page in pages.items())
    found: dict[str, str] = {}
    for program in [YAML, *dict.fromkeys(one for page in pages.values() for one in page.programs)]:
        telling = [(at, name) for at, name in dated if pages[name].tells(program)]
        if not telling:
            continue
        before = [name for at, name in telling if at <= asked]
        if before:
            found[program] = before[-1]
            continue
        at, name = telling[0]
        outer = program.rpartition(" ")[0]
        if not any(asked <= other < at and pages[told].tells(outer) for other, told in dated):
            found[program] = name
    return found
