"""The page of the architecture: every room in its order, no module or file that is not there."""

import re
import tomllib
from pathlib import Path

from tables import each

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "perfgate"
PAGE = (ROOT / "docs" / "dev" / "architecture.md").read_text(encoding="utf-8")
ROOMS = PAGE[PAGE.index("\n## Rooms") : PAGE.index("\n### The walk of a scenario")]
WALKS = PAGE[PAGE.index("\n### The walk of a scenario") : PAGE.index("\n## What happens in")]
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", ROOMS, flags=re.MULTILINE))

PATHS = re.compile(r"`([\w.-]+(?:/[\w.-]+)+|[\w-]+/)`")
# Folders that only a run makes.
_MADE = (".perfgate/", "runs/")


def is_there(room: str, name: str) -> bool:
    """Whether `name` is a module or package of the room, or of one of its folders."""
    places = [PACKAGE / room / name, *(PACKAGE / room).glob(f"*/{name}")]
    modules = [*(PACKAGE / room).glob(f"*/{name}.py"), places[0].with_suffix(".py")]
    return any(one.is_file() for one in [*modules, *(one / "__init__.py" for one in places)])


def test_every_package_has_a_row_and_every_row_a_package() -> None:
    packages = {folder.parent.name for folder in PACKAGE.glob("*/__init__.py")}
    assert set(ROWS) == packages


def test_no_module_lies_loose_beside_the_rooms() -> None:
    assert {file.name for file in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_the_rows_stand_in_the_order_that_the_contract_holds() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers, *others = settings["tool"]["importlinter"]["contracts"]
    assert layers["type"] == "layers"
    assert others
    assert list(ROWS) == layers["layers"]


@each("room", ROWS)
def test_what_a_row_names_is_in_the_room(room: str) -> None:
    names = [name for name in re.findall(r"`([a-z]\w*)`", ROWS[room]) if name not in ROWS]
    missing = [name for name in names if not is_there(room, name)]
    assert missing == []


def test_the_walks_name_modules_that_are_there() -> None:
    text = PAGE[: PAGE.index("\n## Words")] + WALKS
    named = [one for one in re.findall(r"`([a-z]\w*)\.([a-z][\w.]*)`", text) if one[0] in ROWS]
    assert named
    assert [one for one in named if not is_there(one[0], one[1].replace(".", "/"))] == []


def test_every_file_and_folder_that_is_named_is_there() -> None:
    named = [name for name in PATHS.findall(PAGE) if not name.startswith(_MADE)]
    assert named
    missing = [
        name
        for name in named
        if not any((base / name).exists() for base in (ROOT, PACKAGE, ROOT / "docs"))
    ]
    assert missing == []


@each("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_no_page_names_a_module_or_test_that_is_gone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    modules = re.findall(r"`perfgate\.([\w.]+)`", text)
    gone = [
        name
        for name in modules
        if name not in ("host", "start", "owner")  # labels of containers
        and not any(
            is_there("", "/".join(name.split(".")[:depth])) for depth in (len(name.split(".")), -1)
        )
    ]
    files = re.findall(r"`((?:src|tests|ci)/(?:\w+/|test_)[\w./-]+)`", text)
    assert gone + [name for name in files if not (ROOT / name).exists()] == []


def test_every_module_of_the_tests_has_a_name_of_its_own() -> None:
    """pytest imports them by name; those of Slurm and Open MPI are collected by themselves."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []
