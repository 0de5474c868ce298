"""The site of docs/, built once: no warning, no link that leads nowhere, nothing from a network."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from built_site import built_site
from lxml import html
from pygments.lexers import get_lexer_by_name
from tables import each

from ci.maintenance.docs_hooks import navigation
from ci.maintenance.documented_lines import documents

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Addresses that the theme's scripts hold for what this site does not have: a diagram in Mermaid, a
# repository's stars, a browser of before 2020, the authors' notes on a wrong query.
IN_SCRIPTS = {"unpkg.com", "api.github.com", "bit.ly"}

_ADDRESS = re.compile(r"https?://([\w.-]+)")
_CSS_ADDRESS = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')]*)""")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The built site and what mkdocs said."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    return folder, built_site(folder)


@pytest.fixture(scope="module")
def pages(built: tuple[Path, str]) -> dict[Path, html.HtmlElement]:
    """The pages of the site."""
    folder, _ = built
    return {page: html.parse(str(page)).getroot() for page in sorted(folder.rglob("*.html"))}


def references(page: html.HtmlElement) -> Iterator[tuple[str, str, str]]:
    """Every address of a page: its element, its attribute, itself."""
    for element in page.iter("*"):
        for name in ("href", "src", "srcset", "data", "poster", "action"):
            if name in element.attrib:
                yield element.tag, name, element.attrib[name]


def paged(nav: object) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for part in nav.values():
            yield from paged(part)
    elif isinstance(nav, list):
        for part in nav:
            yield from paged(part)


def test_nothing_is_amiss(built: tuple[Path, str]) -> None:
    folder, said = built
    assert [line for line in said.splitlines() if not line.startswith("INFO")] == []
    names = [page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")]
    assert [str(name) for name in names if not (folder / name).is_file()] == []


def test_each_page_is_in_the_navigation_once() -> None:
    files = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    named = sorted(paged(navigation((DOCS / "index.md").read_text())))
    assert named == files, "link each page of docs/ from docs/index.md, which is the navigation"
    parts = [next(iter(part)) for part in navigation((DOCS / "index.md").read_text())]
    assert parts == ["Home", "Tutorial", "How-to", "Reference", "Explanation"]


def test_every_address_leads_to_a_file_and_an_anchor_of_the_site(
    pages: dict[Path, html.HtmlElement],
) -> None:
    anchors = {
        page: {
            *(one.get("id") for one in root.iter("*") if one.get("id")),
            *(one.get("name") for one in root.iter("a") if one.get("name")),
        }
        for page, root in pages.items()
    }
    lost = []
    checked = 0
    for page, root in pages.items():
        for _, _, address in references(root):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (
                Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            )
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and anchor not in anchors.get(target, {anchor})):
                lost.append((page.name, address))
    assert lost == []
    assert checked > 1000


def test_what_leads_elsewhere_is_a_link_for_people_and_well_formed(
    pages: dict[Path, html.HtmlElement],
) -> None:
    elsewhere = {
        (tag, name, address)
        for root in pages.values()
        for tag, name, address in references(root)
        if urlsplit(address).scheme or urlsplit(address).netloc
    }
    assert {(tag, name) for tag, name, _ in elsewhere} <= {("a", "href")}
    for _, _, address in sorted(elsewhere):
        print(address)
        parts = urlsplit(address)
        assert parts.scheme == "https", address
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc), address
        assert not re.search(r"\s", address), address


def test_nothing_is_fetched_from_a_network(built: tuple[Path, str]) -> None:
    folder, _ = built
    styles = [*folder.rglob("*.css"), *folder.rglob("*.html"), *folder.rglob("*.svg")]
    fetched = {found for file in styles for found in _CSS_ADDRESS.findall(file.read_text())}
    assert fetched == set()
    scripts = (folder / "assets").glob("**/*.js")
    hosts = {
        host
        for script in scripts
        if "lunr" not in script.parts  # other languages than English: not loaded
        for host in _ADDRESS.findall(re.sub(r"/\*.*?\*/", "", script.read_text(), flags=re.DOTALL))
    }
    assert hosts - {"www.w3.org"} <= IN_SCRIPTS


def test_pages_have_a_purpose_no_marks_and_nothing_that_makes_the_theme_fetch_something(
    pages: dict[Path, html.HtmlElement],
) -> None:
    for page, root in pages.items():
        assert not root.find_class("mermaid"), page
        assert not root.xpath("//*[@data-md-component='source']"), page
        prose = " ".join(root.xpath("//body//text()[not(ancestor::pre or ancestor::code)]"))
        assert not re.search(r"<!--|-->|not run, (needs|a step)", prose), page
        if "repository" not in page.parts:
            (description,) = root.xpath("//meta[@name='description']/@content")
            assert len(description) > 20, page


def test_the_search_needs_no_server(built: tuple[Path, str]) -> None:
    folder, _ = built
    assert (folder / "search" / "search_index.js").read_text().startswith("var __index = {")
    assert 'src="assets/iframe-worker.js"' in (folder / "index.html").read_text()


def test_docs_holds_nothing_that_is_built() -> None:
    listed = subprocess.run(
        ("git", "ls-files", "--others", "--exclude-standard", "--ignored", "docs"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout == ""
    kinds = {".md", ".svg", ".json", ".png"}  # the picture of README.md is a PNG
    assert {file.suffix for file in DOCS.rglob("*") if file.is_file()} <= kinds


@each("document", documents(ROOT), ids=lambda file: file.name)
def test_a_block_of_code_says_its_language(document: Path) -> None:
    fences = re.findall(r"^ *```+([^\n]*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    for language in fences[::2]:
        assert language, "console for commands with $ and what they print, sh, text, yaml, …"
        get_lexer_by_name(language)
