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


def prose(file: Path) -> str:
    return _FENCE.sub("", file.read_text(encoding="utf-8"))


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
