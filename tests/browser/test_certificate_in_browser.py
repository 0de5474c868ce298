"""The release certificate in a real headless Chromium: for eyes, screen readers, and a printer."""

import re
from collections.abc import Callable
from pathlib import Path

import made_checks
import pytest
from browsing import DESK, PHONE, Browser, wider_than_screen
from run_reports import HOSTILE

from perfgate.release.certificate import certificate_page
from perfgate.release.check_result import ReleaseCheck

CHECKS: dict[str, Callable[[], ReleaseCheck]] = {
    "usual": made_checks.usual,
    "long": made_checks.with_long_names,
    "sixty": lambda: made_checks.usual(60, 1),
    "every": made_checks.with_every_finding,
    "empty": made_checks.check,
    "hostile": lambda: made_checks.hostile(HOSTILE),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, found = tmp_path_factory.mktemp("certificates"), {}
    for name, make in CHECKS.items():
        found[name] = folder / f"certificate-{name}.html"
        found[name].write_text(certificate_page(make(), made_checks.packed()), encoding="utf-8")
    return found


@pytest.mark.parametrize("name", ["long", "every", "hostile"])
@pytest.mark.parametrize(("size", "dark"), [(PHONE, True), (DESK, False)], ids=["phone", "desk"])
def test_is_legible(
    chromium: Browser, pages: dict[str, Path], name: str, size: tuple[int, int], dark: bool
) -> None:
    """Nothing serious of axe's, no scrolling sideways, nothing asked for."""
    page = pages[name]
    chromium.open(page, size=size, dark=dark)
    scheme = "dark" if dark else "light"
    chromium.picture(f"{page.stem}-{size[0]}-{scheme}.png")
    assert wider_than_screen(chromium) == []
    assert chromium.complaints() == []
    assert {one for one in chromium.requests() if not one.startswith("data:")} == {page.as_uri()}
    assert chromium.barriers() == []


@pytest.mark.parametrize("name", ["usual", "long", "sixty", "empty"])
def test_prints_a_usual_release_on_one_page(
    chromium: Browser, pages: dict[str, Path], name: str
) -> None:
    """Signature included; on A4."""
    chromium.open(pages[name])
    printed = chromium.printed(f"certificate-{name}.pdf")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    width, height = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", printed)[0]
    assert (round(float(width)), round(float(height))) == (595, 842)  # in points
