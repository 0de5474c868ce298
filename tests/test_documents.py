"""The documents: one index of all pages, no link, anchor or path that leads nowhere."""

import re
from pathlib import Path

from tables import each

from perfgate.baselines.waivers import load_waivers
from perfgate.scenarios.files import load_scenarios

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs" / "index.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    *sorted(ROOT.glob("*/README.md")),
    *PAGES,
]
# What names a page to people: messages, schemas, comments in files that they edit.
NAMING = [
    file
    for pattern in ("src/**/*.*", "scenarios/**/*.*", "baselines/*.json", "*.*", "Makefile")
    for file in ROOT.glob(pattern)
    if file.suffix in ("", ".py", ".toml", ".yaml", ".json")
    and file.is_file()
    and not file.name.startswith(".")
]

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|svg)")


# Words of an English of our own, each with what readers of other projects expect.
_PLAIN = {
    "told": "reported",
    "mends?": "fix",
    "mended": "fixed",
    "anew": "again",
    "whoever": "a person who",
    "holds? (?:it|them) against": "compare with",
    "held against": "compared with",
    "believed": "trusted",
    "goes before": "overrides",
    "spelled": "rendered",
}
_OWN_WORDS = re.compile(rf"\b(?:{'|'.join(_PLAIN)})\b", re.IGNORECASE)
_ENDS = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*\[\"x])")
_MOST_WORDS, _AT_MOST = 25, 0.05  # of a sentence; of all sentences have more
_CODE = re.compile(r"`[^`\n]*`")


def prose(file: Path) -> str:
    return _FENCE.sub("", file.read_text(encoding="utf-8"))


def own_words(text: str) -> list[str]:
    return _OWN_WORDS.findall(_CODE.sub("", text))


def sentences(file: Path) -> list[str]:
    """The sentences of a document's text, a code or a link's address as a word; no tables."""
    text = re.sub(r"<!--.*?-->|\]\([^)]*\)", "", prose(file), flags=re.DOTALL)
    text = _CODE.sub("x", re.sub(r"^ *(?:\||#|!\[).*$", "", text, flags=re.MULTILINE))
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [one for block in blocks for one in _ENDS.split(" ".join(block.split()))]


def links(file: Path) -> list[tuple[str, Path, str]]:
    """The relative links of a document: as written, the file meant, the anchor."""
    found = []
    for link in _LINK.findall(prose(file)):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            found.append((link, (file.parent / path).resolve() if path else file, anchor))
    return found


def anchors(file: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(file), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_links_the_index() -> None:
    assert INDEX in {path for _, path, _ in links(ROOT / "README.md")}


def test_the_readme_is_short_and_shows_the_suite_and_a_report_at_once() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= 130
    assert len(text.split()) <= 900
    assert "pytest -m b200" in "\n".join(lines[:40])
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert [name for name in pictures if (ROOT / name).is_file()] == ["docs/report.png"]


@each("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_and_anchor_leads_somewhere(document: Path) -> None:
    lost = [
        link
        for link, path, anchor in links(document)
        if not path.exists() or (anchor and anchor not in anchors(path))
    ]
    assert lost == []


def test_every_page_that_code_and_data_name_is_there() -> None:
    named = [(file, name) for file in NAMING for name in _NAMED.findall(file.read_text("utf-8"))]
    assert named
    assert [(str(file), name) for file, name in named if not (ROOT / name).exists()] == []


def test_the_tutorials_scenario_and_waiver_are_good_files_and_fit_each_other(
    tmp_path: Path,
) -> None:
    text = (ROOT / "docs" / "tutorial" / "first_gate.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    files = [tmp_path / "laptop.yaml", tmp_path / "waivers.yaml"]
    for file, block in zip(files, blocks, strict=True):
        file.write_text(block, encoding="utf-8")
    (scenario,) = load_scenarios(files[0])
    (waiver,) = load_waivers(files[1])
    assert (waiver.scenario, waiver.hardware) == (scenario.id, scenario.hardware.label)
    assert waiver.metric in scenario.gate.metrics


def test_the_words_of_our_own_are_known_where_they_stand() -> None:
    assert own_words("It is told anew, and held against `told`.") == [
        "told",
        "anew",
        "held against",
    ]


@each("document", DOCUMENTS)
def test_a_document_says_it_in_plain_words(document: Path) -> None:
    assert own_words(prose(document)) == []


def test_sentences_are_short() -> None:
    words = [
        (len(re.findall(r"[\w'%-]+", one)), f"{file.name}: {one}")
        for file in DOCUMENTS
        for one in sentences(file)
    ]
    counted = [(count, where) for count, where in words if count > 2]
    long = [where for count, where in counted if count > _MOST_WORDS]
    assert len(counted) > 1000
    assert len(long) < _AT_MOST * len(counted), "\n".join(long)
