"""The hooks of the site: what docs/index.md becomes, and links that hold on both sides."""

from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

from ci.docs_hooks import DOCS, ROOT, github_anchor, navigation, page_uri, purpose, rewritten

INDEX = """# Documents

See the [README](../README.md).

## Tutorial: learn it

- [Your first gate](tutorial/first_gate.md): half an hour,
  no GPU.

## How-to: do one thing

On your machines:

- [Slurm](how-to/slurm.md), [Docker](how-to/docker.md): elsewhere.

For your gate:

- [The `waiver`](how-to/waivers.md): see [Docker](how-to/docker.md).

## Explanation: understand it

- [Detection](explanation/detection.md): a study.
- Decisions: [1. one](explanation/decisions/0001.md),
  [2. two](explanation/decisions/0002.md).
"""


def test_the_index_is_the_navigation() -> None:
    assert navigation(INDEX) == [
        {"Home": "index.md"},
        {"Tutorial": [{"Your first gate": "tutorial/first_gate.md"}]},
        {
            "How-to": [
                {
                    "On your machines": [
                        {"Slurm": "how-to/slurm.md"},
                        {"Docker": "how-to/docker.md"},
                    ]
                },
                {"For your gate": [{"The waiver": "how-to/waivers.md"}]},
            ]
        },
        {
            "Explanation": [
                {"Detection": "explanation/detection.md"},
                {
                    "Decisions": [
                        {"1. one": "explanation/decisions/0001.md"},
                        {"2. two": "explanation/decisions/0002.md"},
                    ]
                },
            ]
        },
    ]


@pytest.mark.parametrize(
    ("page", "link", "of_the_site"),
    [
        ("docs/index.md", "../README.md", "repository/README.md"),
        ("docs/how-to/slurm.md", "../../site.example.yaml", "../repository/site.example.yaml.md"),
        ("docs/how-to/slurm.md", "../../README.md#on-gpus", "../repository/README.md#on-gpus"),
        ("docs/how-to/slurm.md", "docker.md#a", "docker.md#a"),
        ("docs/how-to/slurm.md", "../../no-such-file.md", "../../no-such-file.md"),
        ("docs/how-to/slurm.md", "https://example.com/a", "https://example.com/a"),
        ("docs/how-to/slurm.md", "#below", "#below"),
        ("README.md", "docs/how-to/slurm.md#a", "../how-to/slurm.md#a"),
        ("README.md", "SECURITY.md", "SECURITY.md"),
        ("ci/slurm/README.md", "../../README.md", "../../README.md"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site(page: str, link: str, of_the_site: str) -> None:
    assert rewritten(f"a [b]({link}) c", ROOT / page) == f"a [b]({of_the_site}) c"


def test_code_is_left_as_it_is() -> None:
    block = "```text\n[a](../README.md)\n```"
    assert rewritten(f"[a](../README.md)\n\n{block}\n", ROOT / "docs" / "index.md") == (
        f"[a](repository/README.md)\n\n{block}\n"
    )


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        (DOCS / "how-to" / "gpus.md", "how-to/gpus.md"),
        (ROOT / "README.md", "repository/README.md"),
        (ROOT / "ci" / "site.yaml", "repository/ci/site.yaml.md"),
    ],
)
def test_where_a_file_is_on_the_site(file: Path, uri: str) -> None:
    assert page_uri(file) == uri


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("How to add …", "how-to-add-"),
        ("`--inject`, and what it is", "--inject-and-what-it-is"),
        ("Exit status", "exit-status"),
    ],
)
def test_an_anchor_is_that_of_github(heading: str, anchor: str) -> None:
    assert github_anchor(heading.replace("`", "")) == anchor


def test_a_page_begins_with_what_it_is_for() -> None:
    assert purpose("# A\n\nFor `users` of\n[b](b.md).\n\nMore.\n", "a.md") == "For users of b."


@pytest.mark.parametrize(
    "page", ["# A\n\n## B\n", "# A\n\n- list\n", "# A\n\n```\ncode\n```\n", ""]
)
def test_a_page_without_that_is_refused(page: str) -> None:
    with pytest.raises(PluginError, match=r"a\.md: no sentence below its title"):
        purpose(page, "a.md")
