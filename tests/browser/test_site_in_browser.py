"""The site of docs/ in a real headless Chromium, read as files: no server, no network."""

from pathlib import Path

import pytest
from browsing import DESK, PHONE, Browser, wider_than_screen
from built_site import built_site

PAGES = ("index", "how-to/gpus", "reference/verdicts", "reference/commands", "repository/index")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    built_site(folder)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone_asks_for_nothing_but_files_and_complains_of_nothing(
    chromium: Browser, site: Path, page: str
) -> None:
    chromium.open(site / f"{page}.html", size=PHONE)
    chromium.until("return document.readyState === 'complete'")
    asked = chromium.requests()
    assert len(asked) > 3
    assert {address.partition(":")[0] for address in asked} <= {"file", "data"}
    assert chromium.complaints() == []
    assert wider_than_screen(chromium) == []


@pytest.mark.parametrize(("size", "dark"), [(PHONE, True), (DESK, False)], ids=["phone", "desk"])
def test_a_page_has_no_barriers(
    chromium: Browser, site: Path, size: tuple[int, int], dark: bool
) -> None:
    for page in ("reference/commands", "how-to/gpus"):
        chromium.open(site / f"{page}.html", size=size, dark=dark)
        scheme = chromium.until("return document.body.dataset.mdColorScheme")
        assert scheme == ("slate" if dark else "default")
        chromium.until("return document.readyState === 'complete'")
        assert chromium.barriers() == []


def test_the_search_finds_a_page_without_a_server(chromium: Browser, site: Path) -> None:
    chromium.open(site / "how-to" / "gpus.html")
    chromium.one("input.md-search__input").send_keys("waiver expired")
    found = chromium.until(
        "return [...document.querySelectorAll('.md-search-result__link')].map((one) => one.href)"
        ".filter((one) => one.includes('/how-to/waivers.html'))[0]"
    )
    assert found.startswith("file://")
    assert not [one for one in chromium.complaints() if "iframe" not in one]
