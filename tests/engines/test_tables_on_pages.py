"""Each option of a release table is on the option page that the release's own parser told.

Pages that were read by eye have no exceptions: what was not seen there is rendered nowhere.
"""

from collections.abc import Iterator

import msgspec
from tables import each

from perfgate.engines.base import engine
from perfgate.engines.definitions import Definitions
from perfgate.engines.release_tables import Option, ReleaseTable
from perfgate.rehearsal.recorded_pages import FOLDER

PAGES = {
    path.stem: page
    for path in sorted(FOLDER.glob("*.json"))
    if (page := msgspec.json.decode(path.read_bytes(), type=Definitions)).engine in engine
}


def on_page(page: Definitions, table: ReleaseTable) -> Iterator[tuple[str, str, Option]]:
    """Every program, setting and option of a table whose program is on the page."""
    for name, options in table.programs.items():
        for program in {name, f"{name} serve"} & page.programs.keys():
            yield from ((program, setting, option) for setting, option in options.items())


def wrong(page: Definitions, program: str, option: Option) -> Iterator[str]:
    """What the table says of an option, and the page does not."""
    found = set()
    for word in option.spellings:
        known = page.option(program, word.partition("=")[0])
        if known is None:
            yield f"{word} is not on the page"
            continue
        found.add(known.options)
        if word in known.hidden and word not in option.aliases:
            yield f"{word} could not be asked for: help does not show it"
        if "=" not in word and (known.kind == "flag") != option.flag:
            yield f"{word} is of kind {known.kind}"
        if option.choices and set(option.choices) != set(known.choices):
            yield f"{word} takes {', '.join(known.choices) or 'any'}"
    if len(found) > 1:
        yield f"several options: {found}"


@each("name", PAGES)
def test_each_option_of_a_table_is_on_the_page_with_its_kind_and_choices(name: str) -> None:
    page = PAGES[name]
    tables = engine[page.engine].tables
    assert tables is not None
    options = [*on_page(page, tables.release(page.version))]
    assert options, "nothing compared with nothing would fit"
    faults = [
        (*where, fault) for *where, option in options for fault in wrong(page, where[0], option)
    ]
    assert faults == []
