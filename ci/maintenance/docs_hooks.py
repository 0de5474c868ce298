"""What mkdocs.yml leaves to code: one navigation, and links that hold on GitHub and on the site.

The navigation is docs/index.md: its four headings are the parts, a line "On your machines:" begins
a group, and so does an item that begins with a word ("- Decisions: [..](..), [..](..)"). Each page
has its place where it is linked first. Files beside docs/ that a page links, README.md or a
scenario, come along as pages below repository/. Headings have the anchors that GitHub gives them.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BESIDE = "repository"
"""The site's folder for what a page links outside of docs/."""

Navigation = list[dict[str, Any]]

_LINK = re.compile(r"(?<=\]\()(?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?(?=\))")
_ITEM_LINK = re.compile(r"\[([^\]]+)\]\(([^()\s#:]+\.md)\)")
_FENCED = re.compile(r"^(\s*```.*?^\s*```$)", re.DOTALL | re.MULTILINE)
_SHORT_CODE = re.compile(r"<code>(?=(?:-[^<]|[^<\s]){1,32}</code>)")
_LANGUAGES = {".yml": "yaml", ".yaml": "yaml", ".py": "python", ".sh": "sh", ".sbatch": "sh"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the site its navigation, and its headings the anchors of GitHub."""
    config.nav = navigation((DOCS / "index.md").read_text(encoding="utf-8"))
    config.mdx_configs.setdefault("toc", {})["slugify"] = github_anchor
    # Both name pages by an address, and the site has none: it is read wherever it lies.
    config.theme.static_templates -= {"404.html", "sitemap.xml"}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take what the pages link outside of docs/ along, and what that links in turn."""
    waiting = [DOCS / file.src_uri for file in files.documentation_pages()]
    taken = set(waiting)
    while waiting:
        for linked in _linked(waiting.pop()):
            if linked in taken or not linked.is_file() or linked.is_relative_to(DOCS):
                continue
            taken.add(linked)
            files.append(File.generated(config, page_uri(linked), content=_shown(linked)))
            if linked.suffix == ".md":
                waiting.append(linked)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the links of a page lead to the pages that stand for files beside docs/.

    Raises:
        PluginError: the page's first paragraph, which says what it is for, is missing.
    """
    uri = page.file.src_uri
    source = _source(uri)
    if page.file.generated_by is None and uri != "index.md":
        page.meta.setdefault("description", purpose(markdown, uri))
    elif source.suffix != ".md":
        page.meta["search"] = {"exclude": True}  # code, whose words would hide the pages'
    return rewritten(markdown, source)


def on_page_content(html: str, **_: object) -> str:
    """Mark code that is short enough to stay on one line, on a phone too."""
    return _SHORT_CODE.sub('<code class="short">', html)


def on_post_page(output: str, **_: object) -> str:
    """Name the search, which the theme leaves to whoever sees it."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def navigation(index: str) -> Navigation:
    """The pages of docs/ as `docs/index.md` groups them, each once."""
    nav: Navigation = [{"Home": "index.md"}]
    seen = {"index.md"}
    part: Navigation = nav
    group: Navigation = nav
    for paragraph in _paragraphs(index):
        if paragraph.startswith("## "):
            title = paragraph[3:].partition(":")[0]
            part = group = []
            nav.append({title: part})
        elif re.fullmatch(r"[^-\[#][^\[]*:", paragraph):
            group = []
            part.append({paragraph[:-1]: group})
        elif paragraph.startswith("- "):
            named = re.match(r"- ([^:\[]+): \[", paragraph)
            entries: Navigation = []
            for title, path in _ITEM_LINK.findall(" ".join(paragraph.split())):
                if path not in seen:
                    seen.add(path)
                    entries.append({title.replace("`", ""): path})
            group += [{named[1]: entries}] if named else entries
    return nav


def github_anchor(heading: str, separator: str = "-") -> str:
    """The anchor of a heading as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def purpose(markdown: str, name: str) -> str:
    """The paragraph below a page's title as plain text.

    Raises:
        PluginError: there is none.
    """
    found = re.match(
        r"\s*# [^\n]+\n\n(?P<text>(?!```|[\s#|<>]|[-*] )[^\n]+(?:\n[^\n]+)*)", markdown
    )
    if found is None:
        raise PluginError(f"{name}: no sentence below its title says what the page is for")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found["text"])
    return " ".join(text.replace("`", "").replace("*", "").split())


def rewritten(markdown: str, source: Path) -> str:
    """A page's text with the links that leave docs/, or lead back into it, as the site has them."""
    here = Path(page_uri(source)).parent.as_posix()

    def link(found: re.Match[str]) -> str:
        target = _meant(source, found["path"])
        if not target.is_file() or (target.is_relative_to(DOCS) and source.is_relative_to(DOCS)):
            return found[0]
        return relpath(page_uri(target), here) + (found["anchor"] or "")

    return _in_prose(markdown, lambda prose: _LINK.sub(link, prose))


def page_uri(file: Path) -> str:
    """Where the site's sources have a file: docs/ is their root."""
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS).as_posix()
    name = f"{BESIDE}/{file.relative_to(ROOT).as_posix()}"
    return name if file.suffix == ".md" else f"{name}.md"


def _source(uri: str) -> Path:
    """The file that a page is made of."""
    if not uri.startswith(f"{BESIDE}/"):
        return DOCS / uri
    beside = ROOT / uri.removeprefix(f"{BESIDE}/")
    return beside if beside.is_file() else beside.with_suffix("")


def _shown(file: Path) -> str:
    """A file beside docs/ as a page."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return text
    name = file.relative_to(ROOT).as_posix()
    language = _LANGUAGES.get(file.suffix, "text")
    return f"# {name}\n\nThe file as this perfgate has it.\n\n````{language}\n{text}\n````\n"


def _linked(page: Path) -> set[Path]:
    """The files that a page links, wherever they are."""
    if page.suffix != ".md":
        return set()
    prose = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return {_meant(page, found["path"]) for found in _LINK.finditer(prose)}


def _meant(source: Path, link: str) -> Path:
    return Path(os.path.normpath(source.parent / link))


def _in_prose(markdown: str, change: Callable[[str], str]) -> str:
    """The text with all but its blocks of code changed."""
    parts = _FENCED.split(markdown)
    return "".join(part if n % 2 else change(part) for n, part in enumerate(parts))


def _paragraphs(text: str) -> Iterator[str]:
    """Headings, items of lists and other paragraphs, one by one."""
    for paragraph in re.split(r"\n\s*\n|\n(?=- |## )", text):
        if paragraph.strip():
            yield paragraph.strip()
